package idempotency

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestQuotedAndRawSpellingsNameTheSameKey(t *testing.T) {
	for _, c := range []struct{ value, key string }{
		{`8e03978e-40d5-43dd-bc93-6894a57f9324`, `8e03978e-40d5-43dd-bc93-6894a57f9324`},
		{`"8e03978e-40d5-43dd-bc93-6894a57f9324"`, `8e03978e-40d5-43dd-bc93-6894a57f9324`},
		{`  "order 7"  `, `order 7`},
		{` order 7 `, `order 7`},
		{`" order 7 "`, ` order 7 `},
		{`"a,b;c=d"`, `a,b;c=d`},
		{`a;c=d`, `a;c=d`},
		{`a\b`, `a\b`},
		{`"a\\b"`, `a\b`},
		{`"a\"b\\\""`, `a"b\"`},
		{`~ !#$%&'()*+-./:;<=>?@[]^_{|}`, `~ !#$%&'()*+-./:;<=>?@[]^_{|}`},
	} {
		if key, err := parseKey([]string{c.value}); key != c.key || err != nil {
			t.Errorf("parseKey(%q) = %q, %v, want %q", c.value, key, err, c.key)
		}
	}
}

func TestParametersOfAQuotedKeyAreIgnored(t *testing.T) {
	for _, parameters := range []string{
		`;a`, `; a`, `;a;b;c`, `;*a-b.c_d*=1`, `;a=1`, `;a=-1`, `;a=999999999999999`, `;a=1.5`, `;a=-123456789012.123`,
		`;a="x"`, `;a="\"\\;,"`, `;a=token`, `;a=*`, `;a=a/b:c~!#$%&'*+-.^_|` + "`", `;a=?0`, `;a=?1`, `;a=@1659578233`, `;a=@-1`,
		`;a=:aGVsbG8=:`, `;a=::`, `;a=%"f%c3%bc"`, `;a=%""`, `;a=1; b="2" `,
	} {
		value := `"key"` + parameters
		if key, err := parseKey([]string{value}); key != "key" || err != nil {
			t.Errorf("parseKey(%q) = %q, %v, want the key alone", value, key, err)
		}
	}
}

func TestMalformedKeysAreRefused(t *testing.T) {
	for _, c := range []struct {
		value string
		want  error
	}{
		{``, errKeyEmpty},
		{`   `, errKeyEmpty},
		{`""`, errKeyEmpty},
		{`"";a=1`, errKeyEmpty},
		{`"key`, errKeyOpen},
		{`"`, errKeyOpen},
		{`"key\`, errKeyOpen},
		{`"key\"`, errKeyOpen},
		{`"key\n"`, errKeyEscape},
		{`"k\ey"`, errKeyEscape},
		{`key"`, errKeyQuote},
		{`'"key"'`, errKeyQuote},
		{`schlüssel`, errKeyByte},
		{`"schlüssel"`, errKeyByte},
		{"key\xff", errKeyByte},
		{"\"key\xff\"", errKeyByte},
		{"key\x00", errKeyByte},
		{"key\tkey", errKeyByte},
		{"\"key\tkey\"", errKeyByte},
		{"key\r\nSet-Cookie: a=b", errKeyByte},
		{"key\x7f", errKeyByte},
		{"\"key\x7f\"", errKeyByte},
		{`key, key`, errKeyList},
		{`"key", "key"`, errKeyList},
		{`"key","key"`, errKeyList},
		{`"key";a=1, "key"`, errKeyList},
		{`"key" , "key"`, errKeyList},
		{`"key"key`, errKeyTrailer},
		{`"key" key`, errKeyTrailer},
		{`"key" ;a`, errKeyTrailer},
		{`"key";`, errKeyTrailer},
		{`"key";;a`, errKeyTrailer},
		{`"key";A`, errKeyTrailer},
		{`"key";1`, errKeyTrailer},
		{`"key";a=`, errKeyTrailer},
		{`"key";a =1`, errKeyTrailer},
		{`"key";a= 1`, errKeyTrailer},
		{`"key";a=(1)`, errKeyTrailer},
		{`"key";a="x`, errKeyTrailer},
		{`"key";a="\x"`, errKeyTrailer},
		{`"key";a=-`, errKeyTrailer},
		{`"key";a=--1`, errKeyTrailer},
		{`"key";a=1.`, errKeyTrailer},
		{`"key";a=1.2345`, errKeyTrailer},
		{`"key";a=1234567890123.1`, errKeyTrailer},
		{`"key";a=1234567890123456`, errKeyTrailer},
		{`"key";a=.5`, errKeyTrailer},
		{`"key";a=?2`, errKeyTrailer},
		{`"key";a=?`, errKeyTrailer},
		{`"key";a=@`, errKeyTrailer},
		{`"key";a=@1.5`, errKeyTrailer},
		{`"key";a=:aGVsbG8=`, errKeyTrailer},
		{`"key";a=:a-b:`, errKeyTrailer},
		{`"key";a=%"f%C3"`, errKeyTrailer},
		{`"key";a=%"f%c"`, errKeyTrailer},
		{`"key";a=%"f`, errKeyTrailer},
		{`"key";a=%"f` + "\x01" + `"`, errKeyTrailer},
		{`"key";a=%f`, errKeyTrailer},
	} {
		if key, err := parseKey([]string{c.value}); key != "" || !errors.Is(err, c.want) {
			t.Errorf("parseKey(%q) = %q, %v, want %v", c.value, key, err, c.want)
		}
	}
}

func TestAKeyOnTwoLinesIsRefused(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   error
	}{
		{nil, errKeyNone},
		{[]string{"key", "key"}, errKeyTwice},
		{[]string{`"key"`, `"other"`}, errKeyTwice},
		{[]string{"key", ""}, errKeyTwice},
	} {
		if key, err := parseKey(c.values); key != "" || !errors.Is(err, c.want) {
			t.Errorf("parseKey(%q) = %q, %v, want %v", c.values, key, err, c.want)
		}
	}
}

func TestAKeyHas1To255BytesAfterDecoding(t *testing.T) {
	for _, n := range []int{0, 1, 254, 255, 256, 1000} {
		for _, spelling := range []struct{ name, value, key string }{
			{"raw", strings.Repeat("k", n), strings.Repeat("k", n)},
			{"quoted", `"` + strings.Repeat("k", n) + `"`, strings.Repeat("k", n)},
			{"escaped", `"` + strings.Repeat(`\"`, n) + `"`, strings.Repeat(`"`, n)},
		} {
			var want error
			switch {
			case n == 0:
				want = errKeyEmpty
			case n > 255:
				want, spelling.key = errKeyLong, ""
			}
			if key, err := parseKey([]string{spelling.value}); key != spelling.key || !errors.Is(err, want) {
				t.Errorf("%s key of %d bytes: got %d bytes, %v, want %d, %v", spelling.name, n, len(key), err, len(spelling.key), want)
			}
		}
	}
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{
		`key`, `"key"`, `"k\"e\\y"; a=1;b="x"`, `"key", "key"`, "k\x00y", `"key";a=:YQ==:;b=%"%c3"`, strings.Repeat("k", 256),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		key, err := parseKey([]string{value})
		if err != nil {
			if key != "" {
				t.Errorf("parseKey(%q) = %q and an error", value, key)
			}
			// Nothing of a key gets into the text: it is one of those above, whatever the key.
			known := []error{errKeyEmpty, errKeyLong, errKeyByte, errKeyList, errKeyQuote, errKeyOpen, errKeyEscape, errKeyTrailer}
			for _, k := range known {
				if err == k {
					return
				}
			}
			t.Fatalf("parseKey(%q): unknown error %v", value, err)
		}
		if len(key) < 1 || len(key) > 255 {
			t.Errorf("parseKey(%q) has %d bytes", value, len(key))
		}
		for i := range len(key) {
			if key[i] < ' ' || key[i] > '~' {
				t.Errorf("parseKey(%q) = %q: byte %#x", value, key, key[i])
			}
		}
		quoted := fmt.Sprintf(`"%s"`, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key))
		if again, err := parseKey([]string{quoted}); again != key || err != nil {
			t.Errorf("parseKey(%q) = %q, but parseKey(%q) = %q, %v", value, key, quoted, again, err)
		}
	})
}
