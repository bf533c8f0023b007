package riphttp

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// rateLimit reads the RateLimit field (draft-ietf-httpapi-ratelimit-headers): a list of policies, each with what
// remains of it (r) and the seconds until it is filled again (t). Of the policies that have nothing left the one that
// takes longest holds. A malformed field must be ignored, all of it.
func rateLimit(h http.Header) (wait time.Duration, ok bool) {
	lines := h.Values("Ratelimit")
	if len(lines) == 0 {
		return 0, false
	}
	p := fieldParser{rest: strings.Join(lines, ",")}
	policies, valid := p.list()
	if !valid {
		return 0, false
	}
	for _, policy := range policies {
		if policy.remaining == 0 && policy.reset >= 0 {
			wait, ok = max(wait, saturated(policy.reset)), true
		}
	}
	return wait, ok
}

func saturated(seconds int64) time.Duration {
	return time.Duration(min(seconds, math.MaxInt64/int64(time.Second))) * time.Second
}

// A quota is one policy of a RateLimit field. What the field does not say is -1.
type quota struct{ remaining, reset int64 }

// A fieldParser reads as much of Structured Fields (RFC 9651) as RateLimit needs: a list of items with parameters,
// of which the integers r and t are kept and the rest is only checked.
type fieldParser struct{ rest string }

func (p *fieldParser) list() (quotas []quota, ok bool) {
	p.rest = strings.Trim(p.rest, " ")
	for p.rest != "" {
		q, ok := p.item()
		if !ok {
			return nil, false
		}
		quotas = append(quotas, q)
		p.rest = strings.TrimLeft(p.rest, " \t")
		if p.rest == "" {
			break
		}
		if !p.take(',') {
			return nil, false
		}
		p.rest = strings.TrimLeft(p.rest, " \t")
		if p.rest == "" {
			return nil, false // a comma with nothing behind it
		}
	}
	return quotas, true
}

func (p *fieldParser) item() (q quota, ok bool) {
	q = quota{-1, -1}
	if _, _, ok := p.bare(); !ok {
		return q, false
	}
	for p.take(';') {
		p.rest = strings.TrimLeft(p.rest, " ")
		key := p.span(isKey)
		if key == "" || !isLower(key[0]) && key[0] != '*' {
			return q, false
		}
		var n int64
		var integer bool
		if p.take('=') {
			var ok bool
			if n, integer, ok = p.bare(); !ok {
				return q, false
			}
		}
		if key != "r" && key != "t" {
			continue
		}
		if !integer || n < 0 {
			return q, false
		}
		if key == "r" {
			q.remaining = n
		} else {
			q.reset = n
		}
	}
	return q, true
}

// bare reads an item without its parameters and tells its value if that is an integer.
func (p *fieldParser) bare() (n int64, integer, ok bool) {
	if p.rest == "" {
		return 0, false, false
	}
	switch c := p.rest[0]; {
	case c == '-' || isDigit(c):
		return p.number()
	case p.take('"'):
		return 0, false, p.quoted(false)
	case p.take('%'):
		return 0, false, p.take('"') && p.quoted(true)
	case p.take(':'):
		p.span(isBase64)
		return 0, false, p.take(':')
	case p.take('?'):
		return 0, false, p.take('0') || p.take('1')
	case p.take('@'):
		_, integer, ok := p.number()
		return 0, false, ok && integer
	case isAlpha(c) || c == '*':
		p.span(isToken)
		return 0, false, true
	}
	return 0, false, false
}

// number reads an integer of up to 15 digits or a decimal of up to 12 and 3.
func (p *fieldParser) number() (n int64, integer, ok bool) {
	negative := p.take('-')
	whole := p.span(isDigit)
	if p.take('.') {
		fraction := p.span(isDigit)
		return 0, false, whole != "" && len(whole) <= 12 && fraction != "" && len(fraction) <= 3
	}
	if whole == "" || len(whole) > 15 {
		return 0, false, false
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if negative {
		n = -n
	}
	return n, true, err == nil
}

// quoted reads up to and over the closing quote of a string or, with display, of a display string, which escapes
// with a percent sign and two digits.
func (p *fieldParser) quoted(display bool) bool {
	for i := 0; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			p.rest = p.rest[i+1:]
			return true
		case c < 0x20 || c > 0x7e:
			return false
		case c == '\\' && !display:
			i++
			if i == len(p.rest) || p.rest[i] != '"' && p.rest[i] != '\\' {
				return false
			}
		case c == '%' && display:
			i += 2
			if i >= len(p.rest) || !isLowerHex(p.rest[i-1]) || !isLowerHex(p.rest[i]) {
				return false
			}
		}
	}
	return false
}

func (p *fieldParser) take(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// span takes the bytes in front that belong to a class.
func (p *fieldParser) span(class func(byte) bool) string {
	n := 0
	for n < len(p.rest) && class(p.rest[n]) {
		n++
	}
	taken := p.rest[:n]
	p.rest = p.rest[n:]
	return taken
}

func isDigit(c byte) bool    { return '0' <= c && c <= '9' }
func isLower(c byte) bool    { return 'a' <= c && c <= 'z' }
func isAlpha(c byte) bool    { return isLower(c) || 'A' <= c && c <= 'Z' }
func isLowerHex(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' }
func isKey(c byte) bool      { return isLower(c) || isDigit(c) || strings.IndexByte("_-.*", c) >= 0 }
func isBase64(c byte) bool   { return isAlpha(c) || isDigit(c) || strings.IndexByte("+/=", c) >= 0 }
func isToken(c byte) bool {
	return isAlpha(c) || isDigit(c) || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0
}
