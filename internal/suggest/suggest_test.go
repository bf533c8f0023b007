package suggest

import (
	"strings"
	"testing"
)

func TestNameThatWasMeant(t *testing.T) {
	names := []string{"demo", "lab", "call", "version"}
	for typed, want := range map[string]string{
		"dmeo": "demo", "vers": "version", "cal": "call", "calll": "call", "lba": "lab", "la": "lab", "labs": "lab", "vresoin": "version",
		// What could be any other word, or none.
		"v": "", "frobnicate": "", "": "", "get": "", "lid": "", strings.Repeat("call", 1e6): "",
	} {
		if got := Near(typed, names); got != want {
			t.Errorf("Near(%.20q) = %q, want %q", typed, got, want)
		}
	}
}

func TestTheNearestOfSeveralIsMeant(t *testing.T) {
	for typed, want := range map[string]string{"rseet": "reset", "slot": "slow", "clsoe": "close"} {
		if got := Near(typed, []string{"rest", "slower", "slow", "reset", "cloud", "close"}); got != want {
			t.Errorf("Near(%q) = %q, want %q", typed, got, want)
		}
	}
}

func TestASlipIsOneEdit(t *testing.T) {
	for typed, want := range map[string]bool{
		"body": true, "bdoy": true, "bod": true, "bodyy": true, "bady": true, "code": false, "b": false, "dyob": false, "": false,
	} {
		if got := Slip(typed, "body"); got != want {
			t.Errorf("Slip(%q, body) = %v, want %v", typed, got, want)
		}
	}
}
