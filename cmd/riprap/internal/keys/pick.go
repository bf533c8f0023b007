package keys

import (
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/riprap-go/riprap/cmd/riprap/internal/keystore"
	"github.com/riprap-go/riprap/idempotency"
)

const leastDigits = 8 // of an ID that is not given in full

// A pick is which key is meant: the digits of an ID, or what the ID is made of.
type pick struct {
	digits           string
	scope, operation string
	keyFile          string
}

func (p *pick) flags(f *flag.FlagSet) {
	f.StringVar(&p.scope, "scope", "", "instead of an ID: the `SCOPE` that the service gave the request")
	f.StringVar(&p.operation, "operation", "", "with --scope: the operation, `METHOD and path` unless the service has\nits own, such as \"POST /charges\"")
	f.StringVar(&p.keyFile, "key-file", "", "with --scope: a `FILE` with the key as it was sent; - is stdin")
}

// take takes the arguments that are no flags.
func (p *pick) take(rest []string) error {
	parts := p.scope != "" || p.operation != "" || p.keyFile != ""
	switch {
	case len(rest) > 1:
		return fmt.Errorf("unexpected argument %q: want one ID", rest[1])
	case len(rest) == 1 && parts:
		return errors.New("want an ID, or --scope, --operation and --key-file, not both")
	case len(rest) == 0 && !parts:
		return errors.New("want an ID, as riprap keys list shows it, or --scope, --operation and --key-file")
	case parts && (p.scope == "" || p.operation == "" || p.keyFile == ""):
		return errors.New("--scope, --operation and --key-file belong together")
	case parts:
		return nil
	}
	p.digits = strings.ToLower(rest[0])
	if n := len(p.digits); n < leastDigits || n > 64 || strings.Trim(p.digits, "0123456789abcdef") != "" {
		return fmt.Errorf("%q is no ID: want its 64 hexadecimal digits, or at least the first %d; a key itself goes into --key-file", rest[0], leastDigits)
	}
	return nil
}

// find returns the key that is meant, with its answer.
func (p *pick) find(ctx context.Context, s *keystore.Store, stdin io.Reader) (idempotency.Record, error) {
	id, err := p.id(ctx, s, stdin)
	if err != nil {
		return idempotency.Record{}, err
	}
	r, err := s.Show(ctx, id)
	switch {
	case errors.Is(err, idempotency.ErrNotFound) && strings.ContainsAny(p.operation, "{}"):
		return r, fmt.Errorf("no such key in %s: --operation %q is a pattern, as the list shows it: want the path of the request, such as /customers/7, unless the service's operations are patterns (ID %s)", s.Name(), p.operation, id)
	case errors.Is(err, idempotency.ErrNotFound) && p.digits == "":
		return r, fmt.Errorf("no such key in %s: it was never used with this scope and operation, it was freed, or its time is over (ID %s)", s.Name(), id)
	case errors.Is(err, idempotency.ErrNotFound):
		return r, fmt.Errorf("no key %s in %s: it was freed, or its time is over", p.digits, s.Name())
	case err != nil:
		return r, s.Failed(err)
	}
	return r, nil
}

func (p *pick) id(ctx context.Context, s *keystore.Store, stdin io.Reader) (idempotency.ID, error) {
	if p.digits == "" {
		key, err := readKey(p.keyFile, stdin)
		if err != nil {
			return idempotency.ID{}, &keystore.ConfigError{Err: fmt.Errorf("--key-file: %w", err)}
		}
		return idempotency.NewID(p.scope, p.operation, key), nil
	}
	if id, err := idempotency.ParseID(p.digits); err == nil {
		return id, nil
	}
	records, err := s.List(ctx, idempotency.Filter{After: before(p.digits), Limit: 2})
	if err != nil {
		return idempotency.ID{}, s.Failed(err)
	}
	n := 0
	for n < len(records) && strings.HasPrefix(records[n].ID.String(), p.digits) {
		n++
	}
	switch n {
	case 0:
		return idempotency.ID{}, fmt.Errorf("no key begins with %s in %s: it was freed, or its time is over", p.digits, s.Name())
	case 1:
		return records[0].ID, nil
	default:
		return idempotency.ID{}, fmt.Errorf("several keys begin with %s, such as\n  %s\n  %s\ngive more digits", p.digits, records[0].ID, records[1].ID)
	}
}

// before returns the ID before the first one that begins with these digits, the zero one if there is none.
func before(digits string) (id idempotency.ID) {
	hex.Decode(id[:], []byte(digits+strings.Repeat("0", 2*len(id)-len(digits))))
	first := id
	for i := len(id) - 1; i >= 0; i-- {
		id[i]--
		if id[i] != 0xff {
			return id
		}
	}
	return first
}

// readKey reads a key from a file, as it was sent: bare, or as a quoted string. Its errors tell nothing of it.
func readKey(name string, stdin io.Reader) (string, error) {
	const most = 4 << 10 // more than any key, quoted
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer file.Close()
		stdin = file
	}
	text, err := io.ReadAll(io.LimitReader(stdin, most))
	if err != nil {
		return "", err
	}
	key := strings.Trim(string(text), " \t\r\n")
	if strings.HasPrefix(key, `"`) {
		if key, err = unquoted(key); err != nil {
			return "", err
		}
	}
	if key == "" || len(key) > 255 {
		return "", errors.New("want a key of 1 to 255 bytes, and nothing else")
	}
	return key, nil
}

// unquoted is what a String of RFC 9651 says.
func unquoted(s string) (string, error) {
	errBad := errors.New(`the key begins with a quote: want it closed, with \" and \\ as the only escapes, and nothing behind it`)
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"' && i == len(s)-1:
			return b.String(), nil
		case s[i] == '"':
			return "", errBad
		case s[i] == '\\':
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", errBad
			}
		}
		b.WriteByte(s[i])
	}
	return "", errBad
}
