package call

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/internal/suggest"
)

const none = "none" // how a flag says that there is no limit; a policy has a value below zero for it

// A count is a number from 1 on, or none.
type count int

func (c *count) Type() string { return "N" }

func (c *count) String() string {
	if *c < 0 {
		return none
	}
	return strconv.Itoa(int(*c))
}

func (c *count) Set(text string) error {
	n, err := strconv.Atoi(text)
	switch {
	case text == none:
		*c = -1
	case err != nil || n < 1:
		return errors.New("want a number from 1 on, or none")
	default:
		*c = count(n)
	}
	return nil
}

// A limit is a duration, or none, which may be written 0 too, as curl has it.
type limit time.Duration

func (l *limit) Type() string { return "DURATION" }

func (l *limit) String() string {
	if *l < 0 {
		return none
	}
	return short(time.Duration(*l))
}

func (l *limit) Set(text string) error {
	if text == none {
		*l = -1
		return nil
	}
	d, err := duration(text)
	if err != nil {
		return fmt.Errorf("%w, or none", err)
	}
	if d == 0 {
		d = -1
	}
	*l = limit(d)
	return nil
}

// A wait is a limit that may not be zero: to allow no wait is not the same as no limit, and both might be meant.
type wait time.Duration

func (w *wait) Type() string   { return "DURATION" }
func (w *wait) String() string { return (*limit)(w).String() }

func (w *wait) Set(text string) error {
	d, err := duration(text)
	if err == nil && d == 0 {
		return errors.New("want more than nothing, or none")
	}
	return (*limit)(w).Set(text)
}

// duration reads one that is not negative.
func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d >= 0 {
		return d, nil
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 {
		return 0, fmt.Errorf("did you mean %ss? Want a duration", text)
	}
	return 0, errors.New("want a duration such as 500ms, 10s or 1m30s")
}

// A backoff is written BASE..MAX.
type backoff riprap.Backoff

func (b *backoff) Type() string   { return "BASE..MAX" }
func (b *backoff) String() string { return short(b.Base) + ".." + short(b.Max) }

func (b *backoff) Set(text string) error {
	first, most, ok := strings.Cut(text, "..")
	base, err := duration(first)
	if !ok && err == nil && base > 0 {
		return fmt.Errorf("did you mean %s..%s? Want the wait at first and at most", first, short(max(base, 10*time.Second)))
	}
	longest, errMost := duration(most)
	switch {
	case !ok:
		return errors.New("want the wait at first and at most, such as 500ms..10s")
	case err != nil:
		return err
	case errMost != nil:
		return errMost
	case base == 0:
		return errors.New("a wait of nothing at first would not grow: want more, such as 500ms..10s")
	case longest < base:
		return fmt.Errorf("did you mean %s..%s? The first wait is above the longest", most, first)
	}
	b.Base, b.Max = base, longest
	return nil
}

// A jitter is one of the engine's, by its name.
type jitter riprap.Jitter

func (j *jitter) Type() string   { return "KIND" }
func (j *jitter) String() string { return riprap.Jitter(*j).String() }

func (j *jitter) Set(text string) error {
	err := (*riprap.Jitter)(j).UnmarshalText([]byte(text))
	if err == nil {
		return nil
	}
	if near := suggest.Near(text, []string{"full", "equal", "decorrelated", "none"}); near != "" {
		return fmt.Errorf("did you mean %s?", near)
	}
	return errors.New("want full, equal, decorrelated or none")
}

// told is short for what was asked for or computed, which may be as long as a duration can be.
func told(d time.Duration) string {
	const year = 365 * 24 * time.Hour
	if d > year {
		return "more than a year"
	}
	return short(d.Round(time.Microsecond)) // the least wait that can be drawn is a nanosecond
}

// short writes a duration with three digits or so, as a person would.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		digit := time.Duration(1)
		for d >= 1000*digit {
			digit *= 10
		}
		d = d.Round(digit)
	case d < time.Minute:
		d = d.Round(100 * time.Millisecond)
	default:
		d = d.Round(time.Second)
	}
	text := d.String()
	if whole, ok := strings.CutSuffix(text, "m0s"); ok {
		text = whole + "m"
	}
	if whole, ok := strings.CutSuffix(text, "h0m"); ok {
		text = whole + "h"
	}
	return text
}

// isToken reports whether a method or the name of a header may be so named (RFC 9110 §5.6.2).
func isToken(s string) bool {
	special := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) }
	return s != "" && !strings.ContainsFunc(s, special)
}

// isFieldValue reports whether a header may hold the value (RFC 9110 §5.5).
func isFieldValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
