package manifest

import (
	"strings"
	"testing"
)

func TestAnAddressIsTakenOnceHoweverItIsWritten(t *testing.T) {
	for _, c := range []struct {
		first, second string
		both          bool
	}{
		{"127.0.0.1:7070", "127.0.0.1:7071", true},
		{"127.0.0.1:7070", "127.0.0.2:7070", true},
		{"a.example:7070", "b.example:7070", true},
		{"127.0.0.1:0", "127.0.0.1:0", true}, // each gets a port that is free
		{"0.0.0.0:7070", "0.0.0.0:7071", true},
		{"127.0.0.1:7070", "127.0.0.1:7070", false},
		{"127.0.0.1:7070", ":7070", false}, // which is this machine only
		{"localhost:7070", ":7070", false},
		{"LOCALHOST:7070", "127.0.0.1:07070", false},
		{"A.example:7070", "a.example:7070", false},
		{"[::1]:7070", "[0:0::1]:7070", false},
		{"[::ffff:127.0.0.1]:7070", "127.0.0.1:7070", false},
		{"0.0.0.0:7070", "127.0.0.1:7070", false},
		{"127.0.0.1:7070", "0.0.0.0:7070", false},
		{"[::]:7070", "0.0.0.0:7070", false},
		{"a.example:7070", "[::]:7070", false},
	} {
		text := "services:\n  a: {proxy: {listen: \"" + c.first + "\", to: \"http://x\"}}\n  b: {proxy: {listen: \"" + c.second + "\", to: \"http://y\"}}\n"
		want := ""
		if !c.both {
			want = `3:23: listen: ` + c.second + ` is "a"'s address already`
		}
		if got := wrong(text); got != want {
			t.Errorf("%s and %s: got %q, want %q", c.first, c.second, got, want)
		}
	}
	for admin, want := range map[string]string{
		"none": "", "127.0.0.1:7071": "", "localhost:7070": `2:23: listen: 127.0.0.1:7070 is the admin's address already`,
	} {
		if got := wrong("proxy: {admin: \"" + admin + "\"}\nservices:\n  a: {proxy: {listen: 127.0.0.1:7070, to: \"http://x\"}}"); strings.Replace(got, "3:", "2:", 1) != want {
			t.Errorf("the admin's %s: got %q, want %q", admin, got, want)
		}
	}
}

func TestAnAddressOfAServiceIsOneThatCanBeCalled(t *testing.T) {
	for block, want := range map[string]string{
		`to: "http://h", host: payments.example`:        "",
		`to: "h2c://[::1]:9000/base", host: "[::1]:80"`: "",
		`to: "http://h", host: "payments.example:8443"`: "",
		`to: "http://h", host: a b`:                     "host: want a name such as",
		`to: "http://h", host: "http://payments"`:       "host: want a name such as",
		`to: "http://h", host: "payments/charge"`:       "host: want a name such as",
		`to: "http://h", host: "user@payments"`:         "host: want a name such as",
		`to: "http://h", host: "payments:99999"`:        "host: want a name such as",
		`to: "http://h", host: ":80"`:                   "host: want a name such as",
		`to: "http://h", host: ""`:                      "host: want a name such as",
		`to: "http://h:99999"`:                          "to: want a port from 1 to 65535",
		`to: "http://h:0"`:                              "to: want a port from 1 to 65535",
		`to: "http://h?"`:                               "no user, no query",
		`to: "http://h/a?b=c"`:                          "no user, no query",
		`to: "ftp://h"`:                                 "to: want http://, https:// or h2c://",
		`to: "http://:9000"`:                            "to: want http://, https:// or h2c://",
	} {
		got := wrong(`services: {a: {proxy: {listen: "h:1", ` + block + `}}}`)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", block, got, want)
		}
	}
}
