// Package rival holds what riprap is compared with: the ways of other libraries and of tutorials to limit retries and to
// draw waits, each after its source. Nothing of it is riprap's, and every table of the lab says so.
//
// A value decides in one process. It is not safe for concurrent use, because a simulation is one goroutine.
package rival

import "time"

// plain lets everything pass. The others embed it and override what they decide about.
type plain struct{}

func (plain) Admit(time.Duration, int, float64) bool                { return true }
func (plain) Ended(time.Duration, int, error, error)                {}
func (plain) Retry(time.Duration, error) bool                       { return true }
func (plain) Wait(own, prev time.Duration, u float64) time.Duration { return own }

// whole is one, as near as a sum of fractions comes to it.
const whole = 1 - 1e-9
