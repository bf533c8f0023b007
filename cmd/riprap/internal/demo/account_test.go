package demo

import "testing"

func TestTheLedgerIsComparedWithWhatShoppersWereTold(t *testing.T) {
	charges := map[int]int{1: 1, 2: 1, 3: 2, 4: 3, 5: 1, 6: 1, 7: 2}
	outcomes := map[int]told{1: paid, 2: paid, 3: failure, 4: unsure, 5: failure, 7: paid, 8: failure, 9: unsure, 10: paid, 11: failure}
	want := account{
		Charges: 11, Charged: 7, Twice: 3, Most: 3,
		ChargedFailed: 2, ChargedUnsure: 1, ChargedOpen: 1, UnchargedPaid: 1,
	}
	if got := reckon(charges, outcomes); got != want {
		t.Errorf("reckon(%v, %v) = %+v, want %+v", charges, outcomes, got, want)
	}
	if got := reckon(nil, nil); got != (account{}) {
		t.Errorf("reckon of nothing = %+v, want nothing", got)
	}
}
