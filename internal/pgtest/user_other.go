//go:build !unix

package pgtest

import (
	"errors"
	"os/exec"
)

func own(*exec.Cmd, string) error {
	return errors.New("no private PostgreSQL on this system: it takes a Unix shell")
}
