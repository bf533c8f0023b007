//go:build !windows && !plan9 && !wasip1

package riprap

import "syscall"

// unreachable are the system's errors for a peer that is not there, or no longer.
var unreachable = [...]error{
	syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.ETIMEDOUT,
	syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.ENETDOWN, syscall.ENETRESET,
}
