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
			naive[i][lost], naive[i][failed] = 0, 0 // still waiting
		}
	}
	naive[31][retried], naive[41][retried] = 136, 150
	riprap := steady(s).lose(20, 38)
	for i := 26; i < 31; i++ {
		riprap[i][retried], riprap[i][arrived], riprap[i][refused] = 16, 0, 36
	}
	for i := 80; i < 87; i++ {
		riprap[i][retried], riprap[i][arrived] = 14, 34
	}
	return report{Seed: 1, Scenario: s, Sides: []outcome{
		{"naive", naive, measure(s, naive)},
		{"riprap", riprap, measure(s, riprap)},
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
	good := figures{Whole: true, Recovered: true, Again: true, HealthyAfter: 300 * time.Millisecond, AnsweredShare: 0.86, EndShare: 1, Elapsed: 11 * time.Second}
	bad := figures{Whole: true, AnsweredShare: 0.31, Elapsed: 11 * time.Second}
	lostAgain, instant, unknown := bad, good, good
	lostAgain.Again, lostAgain.HealthyAfter = true, time.Second
	instant.HealthyAfter = 0
	starved, rushed := bad, good
	starved.Late, rushed.Late = 1200*time.Millisecond, 700*time.Millisecond
	unknown.Whole, unknown.Recovered, unknown.Elapsed = false, false, 4200*time.Millisecond
	tests := map[string]struct {
		sides []figures
		want  string
		fine  bool
	}{
		"only riprap recovered": {[]figures{bad, good},
			"With riprap the service was healthy again 0.3 s after the outage; with the naive loop it was still failing when the run ended, 7.2 s later. " +
				"Answered in time: 86 % of the calls with riprap, 31 % with the naive loop.", true},
		"at once": {[]figures{bad, instant},
			"With riprap the service was healthy again as soon as the outage was over; with the naive loop it was still failing when the run ended, 7.2 s later. " +
				"Answered in time: 86 % of the calls with riprap, 31 % with the naive loop.", true},
		"both recovered": {[]figures{good, good},
			"The service recovered on both sides of this run: with riprap 0.3 s after the outage, with the naive loop 0.3 s after the outage. " +
				"Answered in time: 86 % of the calls with riprap, 86 % with the naive loop.", true},
		"the naive side was lost again": {[]figures{lostAgain, good},
			"With riprap the service was healthy again 0.3 s after the outage and stayed so; with the naive loop it was, 1.0 s after the outage, and was lost again. " +
				"Answered in time: 86 % of the calls with riprap, 31 % with the naive loop.", true},
		"riprap did not recover": {[]figures{good, bad},
			"With riprap the service did not recover in this run: of the calls made in the last seconds 0 % were answered, 95 % would be healthy. " +
				"Answered in time: 31 % of the calls with riprap, 86 % with the naive loop.", false},
		"the machine was too busy": {[]figures{good, starved},
			"This machine was too busy for a verdict: it made or did calls up to 1.2 s late. " +
				"Answered in time: 31 % of the calls with riprap, 86 % with the naive loop.", false},
		"the machine was busy": {[]figures{bad, rushed},
			"With riprap the service was healthy again 0.3 s after the outage; with the naive loop it was still failing when the run ended, 7.2 s later. " +
				"Answered in time: 86 % of the calls with riprap, 31 % with the naive loop. " +
				"But this machine was busy and made or did calls up to 0.7 s late: these are not the scenario's figures.", true},
		"stopped in the first side":  {[]figures{unknown}, "Stopped after 4.2 s of 22.0 s: no verdict. This is what is known so far.", false},
		"stopped in the second side": {[]figures{bad, unknown}, "Stopped after 15.2 s of 22.0 s: no verdict. This is what is known so far.", false},
		"stopped between the sides":  {[]figures{bad}, "Stopped after 11.0 s of 22.0 s: no verdict. This is what is known so far.", false},
		"stopped before it began":    {nil, "Stopped after 0.0 s of 22.0 s: no verdict. This is what is known so far.", false},
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
	for bins, want := range map[int]string{15: "", 30: "outage", 75: "outage 429"} {
		r := example()
		r.Sides = r.Sides[:1]
		r.Sides[0].Series = r.Sides[0].Series[:bins]
		r.Sides[0].Figures = measure(r.Scenario, r.Sides[0].Series)
		_, rest, _ := strings.Cut(r.text(terminal.Screen{Width: 80}), "\nfaults")
		names, _, _ := strings.Cut(rest, "\ntime")
		got := strings.Join(strings.Fields(strings.ReplaceAll(names, "━", "")), " ")
		if got != want {
			t.Errorf("stopped after %d bins: got the faults %q, want %q", bins, got, want)
		}
	}
}
