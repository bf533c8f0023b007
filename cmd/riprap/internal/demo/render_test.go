package demo

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/riprap-go/riprap/cmd/riprap/internal/golden"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// example is a report made up of round figures: a naive side that never recovers and a riprap side that does.
func example() report {
	s := standard(300)
	naive := steady(s).lose(20, 38)
	for i := 31; i < len(naive); i++ {
		naive[i][retried], naive[i][arrived] = 20, 40
		if i >= 50 {
			naive[i][retried], naive[i][arrived], naive[i][longest] = 35+i%7, 55+i%7, 600
			naive[i][answered], naive[i][kept], naive[i][failed], naive[i][lost] = 0, 0, 20, 20
			naive[i][wasted] = 20
		}
		if i >= 100 {
			naive[i][lost] = 0 // still waiting
		}
		if i >= 50 && i < 90 {
			naive[i][failed] = 0
		}
	}
	naive[31][retried], naive[41][retried] = 136, 150
	riprap := steady(s).lose(20, 38)
	for i := 26; i < 31; i++ {
		riprap[i][retried], riprap[i][arrived], riprap[i][refused] = 16, 0, 36
	}
	for i := 84; i < 88; i++ {
		riprap[i][answered], riprap[i][kept], riprap[i][doubted], riprap[i][unclear], riprap[i][unheard] = 0, 0, 20, 20, 20
	}
	for i := 100; i < 107; i++ {
		riprap[i][retried], riprap[i][arrived] = 14, 34
	}
	return report{Seed: 1, Scenario: s, Sides: []outcome{
		{"naive", naive, measure(s, naive, account{Charges: 2600, Charged: 2000, Twice: 500, Most: 3, ChargedFailed: 900, ChargedOpen: 100})},
		{"riprap", riprap, measure(s, riprap, account{Charges: 2440, Charged: 2440, Most: 1, ChargedUnsure: 80})},
	}}
}

func TestTheReportForPeople(t *testing.T) {
	for name, on := range map[string]terminal.Screen{
		"60 columns":             {Width: 60},
		"80 columns":             {Width: 80},
		"120 columns":            {Width: 120},
		"80 columns with colors": {Width: 80, Palette: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := example().text(on)
			golden.Check(t, strings.ReplaceAll(name, " ", "-")+".txt", got)
			for line := range strings.Lines(got) {
				line = strings.TrimSuffix(line, "\n")
				if n := utf8.RuneCountInString(line); n > on.Width && !bool(on.Palette) {
					t.Errorf("%d columns: got a line of %d: %q", on.Width, n, line)
				}
				if strings.HasSuffix(line, " ") {
					t.Errorf("got a line that ends in blanks: %q", line)
				}
			}
		})
	}
}

func TestColorsSayNothingThatTheTextDoesNot(t *testing.T) {
	colored := example().text(terminal.Screen{Width: 80, Palette: true})
	if !strings.Contains(colored, "\x1b[") {
		t.Fatal("with colors: got none")
	}
	plain := colored
	for {
		start := strings.Index(plain, "\x1b[")
		if start < 0 {
			break
		}
		plain = plain[:start] + plain[start+strings.Index(plain[start:], "m")+1:]
	}
	if want := example().text(terminal.Screen{Width: 80}); plain != want {
		t.Errorf("colors taken away: got\n%s\nwant\n%s", plain, want)
	}
}

func TestTheVerdictSaysWhatWasMeasured(t *testing.T) {
	good := figures{Whole: true, Recovered: true, Again: true, HealthyAfter: 300 * time.Millisecond, AnsweredShare: 0.86, EndShare: 1, Elapsed: 14 * time.Second}
	bad := figures{Whole: true, AnsweredShare: 0.31, Elapsed: 14 * time.Second, Account: account{Twice: 650, ChargedFailed: 820}}
	lostAgain, instant, unknown := bad, good, good
	lostAgain.Again, lostAgain.HealthyAfter = true, time.Second
	instant.HealthyAfter = 0
	starved, rushed, twice, down := bad, good, good, bad
	starved.Late, rushed.Late = 1200*time.Millisecond, 700*time.Millisecond
	starved.Account, down.Account, twice.Account.Twice = account{}, account{}, 1
	unknown.Whole, unknown.Recovered, unknown.Elapsed = false, false, 4200*time.Millisecond
	const (
		money = ` Charged twice: nobody with riprap, 650 clicks with the naive loops. Charged but told "failed": nobody and 820.` +
			" Paid in time: 86 % of the clicks and 31 %."
		none = ` Charged twice: nobody with riprap, nobody with the naive loops. Charged but told "failed": nobody and nobody.`
	)
	tests := map[string]struct {
		sides []figures
		want  string
		fine  bool
	}{
		"only riprap recovered": {[]figures{bad, good},
			"With riprap the payments service was healthy again 0.3 s after the outage; " +
				"with the naive loops it was still failing when the run ended, 10.2 s later." + money, true},
		"at once": {[]figures{bad, instant},
			"With riprap the payments service was healthy again as soon as the outage was over; " +
				"with the naive loops it was still failing when the run ended, 10.2 s later." + money, true},
		"both recovered": {[]figures{good, good},
			"The payments service recovered on both sides of this run: with riprap 0.3 s after the outage, with the naive loops 0.3 s after the outage." + none +
				" Paid in time: 86 % of the clicks and 86 %.", true},
		"the naive side was lost again": {[]figures{lostAgain, good},
			"With riprap the payments service was healthy again 0.3 s after the outage and stayed so; " +
				"with the naive loops it was, 1.0 s after the outage, and was lost again." + money, true},
		"riprap did not recover": {[]figures{good, down},
			"With riprap the payments service did not recover in this run: of the clicks made in the last seconds 0 % were paid, 95 % would be healthy." + none +
				" Paid in time: 31 % of the clicks and 86 %.", false},
		"riprap charged somebody twice": {[]figures{bad, twice},
			"With riprap 1 click was charged twice in this run, which must not be. " +
				"With riprap the payments service was healthy again 0.3 s after the outage; " +
				"with the naive loops it was still failing when the run ended, 10.2 s later." +
				strings.Replace(money, "nobody with riprap", "1 click with riprap", 1), false},
		"the machine was too busy": {[]figures{good, starved},
			"This machine was too busy for a verdict: it made or did calls up to 1.2 s late." + none + " Paid in time: 31 % of the clicks and 86 %.", false},
		"the machine was busy": {[]figures{bad, rushed},
			"With riprap the payments service was healthy again 0.3 s after the outage; " +
				"with the naive loops it was still failing when the run ended, 10.2 s later." + money +
				" But this machine was busy and made or did calls up to 0.7 s late: these are not the scenario's figures.", true},
		"stopped in the first side":  {[]figures{unknown}, "Stopped after 4.2 s of 28.0 s: no verdict. This is what is known so far.", false},
		"stopped in the second side": {[]figures{bad, unknown}, "Stopped after 18.2 s of 28.0 s: no verdict. This is what is known so far.", false},
		"stopped between the sides":  {[]figures{bad}, "Stopped after 14.0 s of 28.0 s: no verdict. This is what is known so far.", false},
		"stopped before it began":    {nil, "Stopped after 0.0 s of 28.0 s: no verdict. This is what is known so far.", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := report{Scenario: standard(300)}
			for i, f := range tt.sides {
				r.Sides = append(r.Sides, outcome{Name: sides[i].name, Figures: f})
			}
			if got := r.verdict(); got != tt.want {
				t.Errorf("verdict: got %q, want %q", got, tt.want)
			}
			if got := r.fine(); got != tt.fine {
				t.Errorf("fine: got %v, want %v", got, tt.fine)
			}
		})
	}
}

func TestAPictureOfARunThatWasStoppedShowsNoFaultThatDidNotHappen(t *testing.T) {
	for bins, want := range map[int]string{15: "", 30: "outage", 75: "outage slow", 130: "outage slow lost 429"} {
		r := example()
		r.Sides = r.Sides[:1]
		r.Sides[0].Series = r.Sides[0].Series[:bins]
		r.Sides[0].Figures = measure(r.Scenario, r.Sides[0].Series, account{})
		_, rest, _ := strings.Cut(r.text(terminal.Screen{Width: 80}), "\nfaults")
		names, _, _ := strings.Cut(rest, "\ntime")
		got := strings.Join(strings.Fields(strings.ReplaceAll(names, "━", "")), " ")
		if got != want {
			t.Errorf("stopped after %d bins: got the faults %q, want %q", bins, got, want)
		}
	}
}
