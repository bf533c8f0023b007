//go:build !unix

package effects

import "errors"

var errStandStill = errors.New("no signal lets a process stand still on this system")

func (p *process) stop() error { return errStandStill }

func (p *process) resume() error { return nil }
