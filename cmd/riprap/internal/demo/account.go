package demo

// A told is what a shopper is told of a click in the end.
type told int

const (
	nothing told = iota // yet
	paid
	failure // it failed: nothing was charged
	unsure  // it is not known whether it was charged
)

// An account compares the ledger with what the shoppers were told. Nothing in it is assumed: it is counted click by click, in
// both, when a side is over. A click is charged if the ledger has a row for it, and charged twice if it has more.
type account struct {
	Charges int // rows
	Charged int // clicks
	Twice   int
	Most    int // rows that a single click has

	ChargedFailed int // charged, and the shopper was told that it failed
	ChargedUnsure int // charged, and the shopper was told that it is not known
	ChargedOpen   int // charged, and the shopper was still waiting at the end
	UnchargedPaid int // not charged, and the shopper was told that it is paid
}

// reckon makes the account of how often each click was charged and what its shopper was told.
func reckon(charges map[int]int, outcomes map[int]told) account {
	var a account
	for click, n := range charges {
		a.Charges += n
		a.Charged++
		a.Most = max(a.Most, n)
		if n > 1 {
			a.Twice++
		}
		switch outcomes[click] {
		case failure:
			a.ChargedFailed++
		case unsure:
			a.ChargedUnsure++
		case nothing:
			a.ChargedOpen++
		}
	}
	for click, outcome := range outcomes {
		if outcome == paid && charges[click] == 0 {
			a.UnchargedPaid++
		}
	}
	return a
}
