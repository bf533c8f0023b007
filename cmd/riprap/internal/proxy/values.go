package proxy

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/riprap-go/riprap/internal/suggest"
)

// none is what stands for no limit on the command line. In a manifest.Proxy it is a negative number.
const none = "none"

// A limit is a flag's value: a duration, or none.
type limit time.Duration

func (l *limit) String() string {
	if l == nil || *l == 0 { // the default, which the text of the flag tells
		return ""
	}
	return time.Duration(*l).String()
}

func (l *limit) Set(text string) error {
	if text == none {
		*l = -1
		return nil
	}
	var d suggest.Duration
	if err := d.Set(text); err != nil {
		return fmt.Errorf("%w, or none", err)
	}
	if d <= 0 {
		return errors.New("want more than nothing; none is no limit")
	}
	*l = limit(d)
	return nil
}

// A count is a flag's value: a whole number above zero, or none.
type count int

func (c *count) String() string {
	if c == nil || *c == 0 {
		return ""
	}
	return strconv.Itoa(int(*c))
}

func (c *count) Set(text string) error {
	if text == none {
		*c = -1
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return errors.New("want a whole number from 1 on, or none")
	}
	*c = count(n)
	return nil
}

// A size is a flag's value: bytes as people write them, or none.
type size int64

func (s *size) String() string {
	if s == nil || *s == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*s), 10)
}

func (s *size) Set(text string) error {
	n, err := parseSize(text)
	if err == nil {
		*s = size(n)
	}
	return err
}

var units = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}, {"", 1}}

// parseSize reads a size such as 64KiB. None is -1.
func parseSize(text string) (int64, error) {
	if text == none {
		return -1, nil
	}
	digits := strings.TrimRight(text, "BGKMTbgkmti")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || digits[0] == '+' {
		return 0, errors.New("want a size such as 64KiB or 1MiB, or none")
	}
	for _, unit := range units {
		if text[len(digits):] == unit.name {
			if n > math.MaxInt64/unit.bytes {
				return 0, errors.New("that is too much")
			}
			return n * unit.bytes, nil
		}
	}
	for _, unit := range units {
		if strings.EqualFold(strings.TrimRight(text[len(digits):], "Bbi"), strings.TrimSuffix(unit.name, "iB")) {
			return 0, fmt.Errorf("did you mean %s%s?", digits, unit.name)
		}
	}
	return 0, errors.New("want a size such as 64KiB or 1MiB, or none")
}

// A list is a flag that may be repeated.
type list []string

func (l *list) String() string { return strings.Join(*l, ", ") }

func (l *list) Set(text string) error {
	*l = append(*l, text)
	return nil
}

// prefixes is a flag's value: networks, joined by commas, or none.
type prefixes []netip.Prefix

func (p *prefixes) String() string { return "" }

func (p *prefixes) Set(text string) error {
	if *p == nil {
		*p = prefixes{}
	}
	if text == none {
		return nil
	}
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		prefix, err := netip.ParsePrefix(word)
		if address, wrong := netip.ParseAddr(word); wrong == nil {
			prefix, err = address.Prefix(address.BitLen())
		}
		if err != nil {
			return fmt.Errorf("%q is no network: want one such as 10.0.0.0/8, several joined by commas, or none", word)
		}
		*p = append(*p, prefix.Masked())
	}
	return nil
}
