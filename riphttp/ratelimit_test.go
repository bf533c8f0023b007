package riphttp

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestRateLimitIsAListOfPolicies(t *testing.T) {
	for _, test := range []struct {
		field string
		want  []quota
	}{
		{"", nil},
		{"a;r=1;t=2", []quota{{1, 2}}},
		{"a;r=1;t=2,b;r=3", []quota{{1, 2}, {3, -1}}},
		{" a;r=1 \t,\t b;  t=4 ", []quota{{1, -1}, {-1, 4}}},
		{"a;r=1;r=5", []quota{{5, -1}}},
		{`"a b\\ \"c\" ;r=9";r=1`, []quota{{1, -1}}},
		{`%"caf%c3%a9, r=0";r=1`, []quota{{1, -1}}},
		{"a/b:c!;r=1", []quota{{1, -1}}},
		{"*;*=x;r=1", []quota{{1, -1}}},
		{"?1;r=0, :YWJj:;r=1, @1700000000;r=2, -7;r=3, 1.5;r=4", []quota{{0, -1}, {1, -1}, {2, -1}, {3, -1}, {4, -1}}},
		{"a;R=1", nil},
	} {
		p := fieldParser{rest: test.field}
		got, ok := p.list()
		if wantOK := test.want != nil || test.field == ""; ok != wantOK || !slices.Equal(got, test.want) {
			t.Errorf("list(%q) = %v, %v, want %v, %v", test.field, got, ok, test.want, wantOK)
		}
	}
}

func TestMalformedRateLimitIsIgnoredAsAWhole(t *testing.T) {
	for _, field := range []string{
		"default r=0", "default;r=0 t=1", "a;r=0;t=1,", "a;r=0;t=1,,b;r=0", ",a;r=0;t=1", ";r=0;t=1", "a;;r=0", "a;r=;t=1", "a;r=0;t=1, b;r=-1", "a;r=0;t=1, b;t=-1", "a;1=2;r=0;t=1", "a;=2;r=0;t=1", "a;r=",
		"a;r=0;t=1;", "a;r=-1;t=1", "a;r=0;t=-1", "a;r=0.0;t=1", "a;r=0;t=1.5", `a;r="0";t=1`, "a;r;t=1", "a;r=?0;t=1",
		"a;r=0;t=1234567890123456", "a;r=0;t=1, -", "a;r=0;t=1, 1.", "a;r=0;t=1, 1.2345", "a;r=0;t=1, 1234567890123.5",
		`"a;r=0;t=1`, `"a\b";r=0;t=1`, "\"a\x7f\";r=0;t=1", "\"ä\";r=0;t=1", `%"%C3";r=0;t=1`, `%"%c";r=0;t=1`, `%a;r=0;t=1`,
		":YW$:;r=0;t=1", ":YW;r=0;t=1", "?2;r=0;t=1", "@1.5;r=0;t=1", "@;r=0;t=1", "(a b);r=0;t=1", "limit=10, remaining=0, reset=5",
	} {
		h := http.Header{"Ratelimit": {field}}
		if wait, ok := rateLimit(h); ok {
			t.Errorf("rateLimit(%q) = %v, want it ignored", field, wait)
		}
	}
}

func FuzzRateLimitParserKeepsWithinTheField(f *testing.F) {
	f.Add(`"burst";r=0;t=7, "day";r=100;t=80000`)
	f.Add(`%"caf%c3%a9";r=1;pk=:YWJj:;x;y=?1;z=@17;w=-1.5`)
	f.Fuzz(func(t *testing.T, field string) {
		p := fieldParser{rest: field}
		quotas, ok := p.list()
		if !ok {
			if quotas != nil {
				t.Errorf("list(%q) = %v, false, want nothing of a malformed field", field, quotas)
			}
			return
		}
		if commas := strings.Count(field, ","); len(quotas) > commas+1 {
			t.Errorf("list(%q) has %d policies behind %d commas", field, len(quotas), commas)
		}
		for _, q := range quotas {
			if q.remaining < -1 || q.reset < -1 || q.reset > 999_999_999_999_999 {
				t.Errorf("list(%q) = %v, want integers of RFC 9651 from 0 on, or -1", field, quotas)
			}
		}
		again := fieldParser{rest: field + "," + field}
		if twice, ok := again.list(); field != "" && len(quotas) > 0 && (!ok || len(twice) != 2*len(quotas)) {
			t.Errorf("list(%q twice) = %v, %v, want %v twice", field, twice, ok, quotas)
		}
	})
}
