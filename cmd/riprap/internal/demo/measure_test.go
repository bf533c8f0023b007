package demo

import (
	"math"
	"testing"
	"time"
)

// steady is a whole run of the standard scenario in which every call is sent once and answered at once, 20 calls in
// each bin.
func steady(s scenario) series {
	b := make(series, index(s.Length))
	for i := range b {
		b[i][made], b[i][arrived], b[i][worked], b[i][answered], b[i][kept] = 20, 20, 20, 20, 20
	}
	return b
}

// lose makes the calls of the bins from up to, not including, to fail.
func (b series) lose(from, to int) series {
	for i := from; i < to; i++ {
		b[i][answered], b[i][kept], b[i][failed], b[i][lost] = 0, 0, 20, 20
	}
	return b
}

func TestARunWithoutLossHasFullMarks(t *testing.T) {
	s := standard(300)
	f := measure(s, steady(s), account{})
	if !f.Whole || !f.Recovered || !f.Again || f.HealthyAfter != 0 {
		t.Errorf("measure: got whole %v, recovered %v, healthy again %v after %v, want yes, yes, yes, 0s", f.Whole, f.Recovered, f.Again, f.HealthyAfter)
	}
	if f.AnsweredShare != 1 || f.EndShare != 1 || f.SentPerCall != 1 || f.WastedShare != 0 {
		t.Errorf("measure: got answered %v, at the end %v, sent %v, wasted %v, want 1, 1, 1, 0", f.AnsweredShare, f.EndShare, f.SentPerCall, f.WastedShare)
	}
	if want := 200 / s.capacity(); math.Abs(f.WorstLoad-want) > 1e-9 {
		t.Errorf("measure: got worst load %v, want %v", f.WorstLoad, want)
	}
}

func TestHealthIsDatedFromTheEndOfTheOutage(t *testing.T) {
	s := standard(300)
	over := index(s.Faults[0].until())
	tests := map[string]struct {
		b         series
		want      time.Duration
		again     bool
		recovered bool
	}{
		"at once":                           {steady(s).lose(over-18, over), 0, true, true},
		"four bins later":                   {steady(s).lose(over-18, over+4), 400 * time.Millisecond, true, true},
		"never":                             {steady(s).lose(over, len(steady(s))), 0, false, false},
		"a good second is not health":       {steady(s).lose(over+10, len(steady(s))), 0, false, false},
		"healthy, then lost for good":       {steady(s).lose(70, len(steady(s))), 0, true, false},
		"only after the third fault":        {steady(s).lose(over, 88), 5000 * time.Millisecond, true, true},
		"a lost second after the end shows": {steady(s).lose(over-18, over).lose(112, 122), 0, true, false},
		"the last second is not judged":     {steady(s).lose(130, 140), 0, true, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := measure(s, tt.b, account{})
			if f.HealthyAfter != tt.want || f.Again != tt.again || f.Recovered != tt.recovered {
				t.Errorf("measure: got healthy again %v after %v, recovered %v, want %v after %v, %v",
					f.Again, f.HealthyAfter, f.Recovered, tt.again, tt.want, tt.recovered)
			}
		})
	}
}

func TestNineteenOfTwentyCallsAtTheEndAreEnough(t *testing.T) {
	s := standard(300)
	end := index(s.Length - settle)
	for missing, want := range map[int]bool{20: true, 21: false} { // of 400 calls
		b := steady(s)
		for i := range missing {
			b[end-1-i%20][kept]--
		}
		if f := measure(s, b, account{}); f.Recovered != want {
			t.Errorf("measure with %d of 400 calls unanswered: got share %v, recovered %v, want %v", missing, f.EndShare, f.Recovered, want)
		}
	}
}

func TestOpenClicksCountNeitherAsAnsweredNorAsFailed(t *testing.T) {
	s := standard(300)
	b := steady(s).lose(0, 10)
	for i := 50; i < 60; i++ {
		b[i][kept], b[i][answered] = 0, 0
	}
	f := measure(s, b, account{})
	if f.Open != 200 || f.Failed != 200 || f.Answered != 2400 {
		t.Errorf("measure: got %d open, %d failed, %d answered, want 200, 200, 2400", f.Open, f.Failed, f.Answered)
	}
	if want := 2400.0 / 2600; f.AnsweredShare != want {
		t.Errorf("measure: got answered share %v, want %v", f.AnsweredShare, want)
	}
}

func TestRefusedSendsCountAsSentButNotAsLoad(t *testing.T) {
	s := standard(300)
	b := steady(s)
	for i := 20; i < 30; i++ {
		b[i][arrived], b[i][refused], b[i][retried] = 0, 60, 40
	}
	for i := 40; i < 50; i++ {
		b[i][arrived], b[i][retried], b[i][worked], b[i][wasted] = 50, 30, 20, 20
	}
	f := measure(s, b, account{})
	if want := 130*20 + 10*60 + 10*30; f.Sent != want {
		t.Errorf("measure: got %d sent, want %d", f.Sent, want)
	}
	if f.Retries != 700 {
		t.Errorf("measure: got %d retries, want 700", f.Retries)
	}
	if want := 500 / s.capacity(); math.Abs(f.WorstLoad-want) > 1e-9 {
		t.Errorf("measure: got worst load %v, want %v", f.WorstLoad, want)
	}
	if want := 200.0 / 2800; f.WastedShare != want {
		t.Errorf("measure: got wasted share %v, want %v", f.WastedShare, want)
	}
}

func TestARunThatWasStoppedHasNoVerdict(t *testing.T) {
	s := standard(300)
	for _, bins := range []int{0, 1, 7, 38, 139} {
		f := measure(s, steady(s)[:bins], account{})
		if f.Whole || f.Recovered {
			t.Errorf("measure of %d bins: got whole %v, recovered %v, want neither", bins, f.Whole, f.Recovered)
		}
		if f.Made != 20*bins {
			t.Errorf("measure of %d bins: got %d calls, want %d", bins, f.Made, 20*bins)
		}
	}
}

func TestTheLatestCallTellsOfABusyMachine(t *testing.T) {
	s := standard(300)
	b := steady(s)
	b[7][behind], b[60][behind] = 30, 700
	if got, want := measure(s, b, account{}).Late, 700*time.Millisecond; got != want {
		t.Errorf("measure: got calls up to %v late, want %v", got, want)
	}
}

func TestClicksInFlightAreThoseWithoutAnAnswer(t *testing.T) {
	s := standard(300)
	b := steady(s)
	for i := 50; i < 60; i++ {
		b[i][kept], b[i][answered] = 0, 0
	}
	b[70][failed], b[71][doubted], b[72][answered] = 100, 50, 70
	got := b.inFlight()
	if got[49] != 0 || got[54] != 100 || got[59] != 200 || got[70] != 100 || got[71] != 50 || got[72] != 0 {
		t.Errorf("200 clicks that wait from bin 50 on: got %v in flight", got)
	}
	if f := measure(s, b, account{}); f.InFlight != 200 {
		t.Errorf("measure: got %d in flight at most, want 200", f.InFlight)
	}
}

func TestAnUnknownOutcomeIsNeitherPaidNorFailed(t *testing.T) {
	s := standard(300)
	b := steady(s)
	for i := 84; i < 88; i++ {
		b[i][answered], b[i][kept], b[i][doubted], b[i][unclear] = 0, 0, 20, 20
	}
	f := measure(s, b, account{ChargedUnsure: 80})
	if f.Unknown != 80 || f.Failed != 0 || f.Open != 0 || f.AnsweredShare != 2720.0/2800 || f.Account.ChargedUnsure != 80 {
		t.Errorf("measure: got %d unknown, %d failed, %d open, share %v, account %+v, want 80, 0, 0, %v", f.Unknown, f.Failed, f.Open, f.AnsweredShare, f.Account, 2720.0/2800)
	}
}
