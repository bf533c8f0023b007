package riprap

import "syscall"

// unreachable are the system's errors for a peer that is not there, or no longer: WSAENETDOWN, WSAENETUNREACH,
// WSAENETRESET, WSAECONNABORTED, WSAECONNRESET, WSAETIMEDOUT, WSAECONNREFUSED, WSAEHOSTDOWN and WSAEHOSTUNREACH. Package
// syscall's names without WSA stand for numbers that Windows never returns.
var unreachable = [...]error{
	syscall.Errno(10050), syscall.Errno(10051), syscall.Errno(10052), syscall.Errno(10053), syscall.Errno(10054),
	syscall.Errno(10060), syscall.Errno(10061), syscall.Errno(10064), syscall.Errno(10065),
}
