package suggest

import "testing"

func TestNameThatWasMeant(t *testing.T) {
	names := []string{"demo", "lab", "call", "version"}
	for typed, want := range map[string]string{
		"dmeo": "demo", "vers": "version", "cal": "call", "calll": "call", "v": "", "frobnicate": "", "": "", "lba": "lab",
	} {
		if got := Near(typed, names); got != want {
			t.Errorf("Near(%q) = %q, want %q", typed, got, want)
		}
	}
}
