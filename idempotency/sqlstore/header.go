package sqlstore

import (
	"encoding/binary"
	"errors"
	"maps"
	"net/http"
	"slices"
)

// Headers are kept as names and values with their lengths, in the order of the names. Neither the lines of HTTP nor JSON would give back
// every byte that a handler may have set.

func encodeHeader(h http.Header) []byte {
	b := []byte{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		b = appendString(b, name)
		b = binary.AppendUvarint(b, uint64(len(h[name])))
		for _, value := range h[name] {
			b = appendString(b, value)
		}
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errHeader = errors.New("sqlstore: the header of the answer is damaged")

func decodeHeader(b []byte) (http.Header, error) {
	h := http.Header{}
	for len(b) > 0 {
		name, rest, ok := cutString(b)
		n, size := binary.Uvarint(rest)
		if !ok || size <= 0 || n > uint64(len(rest)) { // each value takes at least a byte
			return nil, errHeader
		}
		b = rest[size:]
		values := make([]string, n)
		for i := range values {
			if values[i], b, ok = cutString(b); !ok {
				return nil, errHeader
			}
		}
		h[name] = values
	}
	return h, nil
}

func cutString(b []byte) (s string, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return "", nil, false
	}
	b = b[size:]
	return string(b[:n]), b[n:], true
}
