package idempotency

import (
	"errors"
	"strings"
)

const maxKey = 255 // bytes, decoded

// What is wrong with a key. The texts go into answers and logs, so none of them holds any of the key.
var (
	errKeyNone    = errors.New("there is no key")
	errKeyTwice   = errors.New("the key is given more than once")
	errKeyList    = errors.New("a key is one string, not a list")
	errKeyEmpty   = errors.New("the key is empty")
	errKeyLong    = errors.New("the key is longer than 255 bytes")
	errKeyByte    = errors.New("the key has a byte that is not printable ASCII")
	errKeyQuote   = errors.New("the key has a quote in it and does not begin with one")
	errKeyOpen    = errors.New("the key begins with a quote and has no closing one")
	errKeyBare    = errors.New("the key is not quoted")
	errKeyEscape  = errors.New(`in a quoted key a backslash stands before a quote or a backslash only`)
	errKeyTrailer = errors.New("there is something after the key that is no parameter of a structured field")
)

// parseKey reads the values of an Idempotency-Key field: one quoted string, which is an Item of RFC 9651 whose parameters
// say nothing to us, or the key as it is, which is what most clients send. Both name the same key.
//
// A key without quotes may hold neither quotes nor commas: it might be a list that a proxy joined from two lines.
func parseKey(values []string) (string, error) {
	switch len(values) {
	case 0:
		return "", errKeyNone
	case 1:
	default:
		return "", errKeyTwice
	}
	value := strings.Trim(values[0], " ")
	var key string
	var err error
	if strings.HasPrefix(value, `"`) {
		key, err = quotedKey(value)
	} else {
		key, err = value, checkRawKey(value)
	}
	switch {
	case err != nil:
		return "", err
	case key == "":
		return "", errKeyEmpty
	case len(key) > maxKey:
		return "", errKeyLong
	}
	return key, nil
}

func checkRawKey(value string) error {
	for i := range len(value) {
		switch c := value[i]; {
		case !printable(c):
			return errKeyByte
		case c == ',':
			return errKeyList
		case c == '"':
			return errKeyQuote
		}
	}
	return nil
}

func quotedKey(value string) (string, error) {
	p := fieldParser{rest: value}
	key, err := p.quoted()
	if err != nil {
		return "", err
	}
	if !p.parameters() {
		return "", errKeyTrailer
	}
	switch {
	case p.rest == "":
		return key, nil
	case strings.HasPrefix(strings.TrimLeft(p.rest, " \t"), ","):
		return "", errKeyList
	}
	return "", errKeyTrailer
}

func printable(c byte) bool { return 0x20 <= c && c <= 0x7e }

// A fieldParser reads what a key may consist of, from the front (RFC 9651, section 4.2).
type fieldParser struct{ rest string }

// quoted reads a String. The quote that it begins with is there.
func (p *fieldParser) quoted() (string, error) {
	var text strings.Builder
	for i := 1; i < len(p.rest); i++ {
		c := p.rest[i]
		switch {
		case !printable(c):
			return "", errKeyByte
		case c == '"':
			p.rest = p.rest[i+1:]
			return text.String(), nil
		case c == '\\':
			i++
			if i == len(p.rest) {
				return "", errKeyOpen
			}
			if c = p.rest[i]; c != '"' && c != '\\' {
				return "", errKeyEscape
			}
		}
		text.WriteByte(c)
	}
	return "", errKeyOpen
}

// parameters skips the parameters of an Item, and reports whether they are well-formed.
func (p *fieldParser) parameters() bool {
	for p.skip(';') {
		p.rest = strings.TrimLeft(p.rest, " ")
		if p.rest == "" || !lower(p.rest[0]) && p.rest[0] != '*' {
			return false
		}
		p.skipWhile(func(c byte) bool { return lower(c) || digit(c) || strings.IndexByte("_-.*", c) >= 0 })
		if p.skip('=') && !p.bareItem() {
			return false
		}
	}
	return true
}

// bareItem skips a value of any type that RFC 9651 has.
func (p *fieldParser) bareItem() bool {
	if p.rest == "" {
		return false
	}
	switch c := p.rest[0]; {
	case c == '"':
		_, err := p.quoted()
		return err == nil
	case digit(c), c == '-':
		return p.number(true)
	case letter(c), c == '*':
		p.skipWhile(func(c byte) bool {
			return letter(c) || digit(c) || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0
		})
		return true
	case c == '?':
		p.rest = p.rest[1:]
		return p.skip('0') || p.skip('1')
	case c == '@':
		p.rest = p.rest[1:]
		return p.number(false)
	case c == ':':
		p.rest = p.rest[1:]
		p.skipWhile(func(c byte) bool { return letter(c) || digit(c) || strings.IndexByte("+/=", c) >= 0 })
		return p.skip(':')
	case strings.HasPrefix(p.rest, `%"`):
		p.rest = p.rest[2:]
		return p.displayString()
	}
	return false
}

// number skips an Integer of at most 15 digits or, if it may be one, a Decimal of at most 12 digits before and 1 to 3
// after the point.
func (p *fieldParser) number(decimal bool) bool {
	p.skip('-')
	whole := p.skipWhile(digit)
	if !decimal || whole == 0 || !p.skip('.') {
		return 1 <= whole && whole <= 15
	}
	fraction := p.skipWhile(digit)
	return whole <= 12 && 1 <= fraction && fraction <= 3
}

// displayString skips a Display String whose opening is read. That its escapes are UTF-8 is nobody's concern here.
func (p *fieldParser) displayString() bool {
	hex := func(c byte) bool { return digit(c) || 'a' <= c && c <= 'f' }
	for i := 0; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case !printable(c):
			return false
		case c == '"':
			p.rest = p.rest[i+1:]
			return true
		case c == '%':
			if i+2 >= len(p.rest) || !hex(p.rest[i+1]) || !hex(p.rest[i+2]) {
				return false
			}
			i += 2
		}
	}
	return false
}

// skip skips a byte, if it comes next.
func (p *fieldParser) skip(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// skipWhile skips the bytes that come next and are of a kind, and counts them.
func (p *fieldParser) skipWhile(is func(byte) bool) (n int) {
	for n < len(p.rest) && is(p.rest[n]) {
		n++
	}
	p.rest = p.rest[n:]
	return n
}

func digit(c byte) bool  { return '0' <= c && c <= '9' }
func lower(c byte) bool  { return 'a' <= c && c <= 'z' }
func letter(c byte) bool { return lower(c) || 'A' <= c && c <= 'Z' }
