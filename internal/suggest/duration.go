package suggest

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// A Duration is a flag's value that says what a number lacks which has no unit.
type Duration time.Duration

func (d *Duration) String() string { return time.Duration(*d).String() }

// Set reads what [time.ParseDuration] does.
func (d *Duration) Set(text string) error {
	v, err := time.ParseDuration(text)
	if err == nil {
		*d = Duration(v)
		return nil
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return fmt.Errorf("did you mean %ss?", text)
	}
	return errors.New("want a duration such as 500ms, 10s or 1m30s")
}
