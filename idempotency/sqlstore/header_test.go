package sqlstore

import (
	"bytes"
	"net/http"
	"reflect"
	"testing"
)

func TestAHeaderComesBackByteForByte(t *testing.T) {
	for _, h := range []http.Header{
		{},
		{"Content-Type": {"application/json"}},
		{"Link": {"</1>; rel=next", "</2>; rel=last"}, "Etag": {`"a"`}},
		{"Empty": {""}, "None": {}, "": {"no name"}},
		{"Latin": {"caf\xe9", "\x00\r\n : ,"}},
	} {
		if got, err := decodeHeader(encodeHeader(h)); err != nil || !reflect.DeepEqual(got, h) {
			t.Errorf("decodeHeader(encodeHeader(%q)) = %q, %v", h, got, err)
		}
	}
	if got, err := decodeHeader(nil); err != nil || got == nil {
		t.Errorf("decodeHeader(nil) = %v, %v, want a header to add to", got, err)
	}
}

func TestEqualHeadersAreKeptAlike(t *testing.T) {
	h := http.Header{}
	for _, name := range []string{"E", "D", "C", "B", "A"} {
		h[name] = []string{name}
	}
	if first, second := encodeHeader(h), encodeHeader(h.Clone()); !bytes.Equal(first, second) {
		t.Errorf("encodeHeader gave %q and then %q", first, second)
	}
}

// What is in the database may be anything: it is read in bounds, or refused.
func FuzzDecodeHeader(f *testing.F) {
	f.Add([]byte{})
	f.Add(encodeHeader(http.Header{"Link": {"</1>", "</2>"}, "Etag": {""}}))
	f.Add([]byte{1, 'a', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Add([]byte{1, 'a', 3, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := decodeHeader(b)
		if err != nil {
			return
		}
		again, err := decodeHeader(encodeHeader(h))
		if err != nil || !reflect.DeepEqual(again, h) {
			t.Errorf("decodeHeader(%q) = %q, and encoded and decoded again %q, %v", b, h, again, err)
		}
	})
}
