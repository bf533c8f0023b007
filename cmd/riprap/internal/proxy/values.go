package proxy

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/internal/suggest"
)

// none is what stands for no limit on the command line. In what it stands for it is a negative number.
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
		if strings.HasSuffix(err.Error(), "?") { // what was meant is known
			return err
		}
		return fmt.Errorf("%w, or none", err)
	}
	if d <= 0 {
		return errors.New("want more than nothing; none is no limit")
	}
	*l = limit(d)
	return nil
}

// A positive is a flag's value: a duration above zero.
type positive time.Duration

func (p *positive) String() string { return (*limit)(p).String() }

func (p *positive) Set(text string) error {
	var d suggest.Duration
	if err := d.Set(text); err != nil {
		return err
	}
	if d <= 0 {
		return errors.New("want more than nothing")
	}
	*p = positive(d)
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

func (s *size) Set(text string) (err error) {
	n, err := manifest.ParseSize(text)
	if err == nil {
		*s = size(n)
	}
	return err
}

// patterns is a flag that may be repeated: of requests.
type patterns struct {
	to    *[]string
	keyed bool
}

func (p patterns) String() string { return "" }

func (p patterns) Set(text string) error {
	if err := manifest.CheckPattern(text); err != nil {
		return err
	}
	if method, _, _ := strings.Cut(text, " "); p.keyed && manifest.Keyless(method) {
		return fmt.Errorf("a %s needs no key: it may be sent again as it is", method)
	}
	*p.to = append(*p.to, text)
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
		prefix, err := manifest.ParsePrefix(word)
		if err != nil {
			return fmt.Errorf("%q is no network: want one such as 10.0.0.0/8, several joined by commas, or none", word)
		}
		*p = append(*p, prefix)
	}
	return nil
}
