package idempotency

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
)

// An ID names the record of a key: a hash of the scope, the operation and the key, so that no store and no log holds the key itself.
type ID [sha256.Size]byte

// NewID returns the ID of a key. The parts are hashed with their lengths, so that no two triples look alike.
func NewID(scope, operation, key string) (id ID) {
	h := sha256.New()
	for _, part := range [...]string{"riprap key 1", scope, operation, key} {
		writePart(h, part)
	}
	h.Sum(id[:0])
	return id
}

func writePart[T string | []byte](h hash.Hash, part T) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(part)))
	h.Write(length[:])
	h.Write([]byte(part))
}

// String returns the ID in 64 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID reads what String wrote.
func ParseID(s string) (id ID, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return ID{}, fmt.Errorf("idempotency: %q is not an ID: want 64 hexadecimal digits", s)
	}
	return ID(b), nil
}

// ChildKey returns the key for a call further down that a run of this key makes under a name, such as "charge". It is the same in
// every run, so that the service there runs it once, and tells nothing of the key it is made from. It has 43 characters of
// letters, digits, - and _.
func (id ID) ChildKey(name string) string {
	h := sha256.New()
	writePart(h, "riprap child key 1")
	writePart(h, id[:])
	writePart(h, name)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
