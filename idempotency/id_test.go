package idempotency

import (
	"strings"
	"testing"
)

func TestNoTwoTriplesHaveTheSameID(t *testing.T) {
	type triple struct{ scope, operation, key string }
	seen := map[ID]triple{}
	for _, c := range []triple{
		{"a", "b", "c"}, {"ab", "", "c"}, {"", "ab", "c"}, {"a", "", "bc"}, {"a", "bc", ""}, {"abc", "", ""}, {"", "", "abc"},
		{"", "", ""}, {"b", "a", "c"}, {"a", "c", "b"}, {"a\x00", "b", "c"}, {"a", "\x00b", "c"},
	} {
		id := NewID(c.scope, c.operation, c.key)
		if other, ok := seen[id]; ok {
			t.Errorf("NewID of %q and of %q are the same", c, other)
		}
		seen[id] = c
		if again := NewID(c.scope, c.operation, c.key); again != id {
			t.Errorf("NewID of %q = %v, then %v", c, id, again)
		}
	}
}

// Stores hold IDs, and services further down hold child keys, across versions of this package.
func TestIDsAndChildKeysAreTheSameForEver(t *testing.T) {
	id := NewID("customer", "POST /charges", "key")
	if got, want := id.String(), "ee2141319118bbf6557d961c213b9909e0a88ee5577cc987852a035698b49565"; got != want {
		t.Errorf("ID = %s, want %s", got, want)
	}
	if got, want := id.ChildKey("charge"), "tTzsJ8rn0j9mD_4ySnNlyE4kXEPyiZvW1JXwh7HzJeU"; got != want {
		t.Errorf("ChildKey = %s, want %s", got, want)
	}
}

func TestChildKeysDifferByKeyAndName(t *testing.T) {
	a, b := NewID("", "", "a"), NewID("", "", "b")
	seen := map[string]bool{}
	for _, key := range []string{a.ChildKey("charge"), a.ChildKey("mail"), a.ChildKey(""), b.ChildKey("charge")} {
		if len(key) != 43 || strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			t.Errorf("ChildKey = %q, want 43 letters, digits, - and _", key)
		}
		if seen[key] {
			t.Errorf("ChildKey %q twice", key)
		}
		seen[key] = true
	}
}

func TestParseIDReadsWhatStringWrote(t *testing.T) {
	id := NewID("a", "b", "c")
	if got, err := ParseID(id.String()); got != id || err != nil {
		t.Errorf("ParseID(%v) = %v, %v", id, got, err)
	}
	if got, err := ParseID(strings.ToUpper(id.String())); got != id || err != nil {
		t.Errorf("ParseID in capitals = %v, %v, want %v", got, err, id)
	}
	for _, s := range []string{"", "00", id.String()[1:], id.String() + "00", strings.Repeat("g", 64), strings.Repeat("é", 32)} {
		if got, err := ParseID(s); err == nil || got != (ID{}) {
			t.Errorf("ParseID(%q) = %v, %v, want an error", s, got, err)
		}
	}
}
