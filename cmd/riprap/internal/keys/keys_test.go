package keys

import (
	"strings"
	"testing"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
)

func TestHelpSaysWhatThereIsToDo(t *testing.T) {
	for args, want := range map[string]string{
		"-h":         "resolve   end a key that is stuck",
		"list -h":    "-stuck",
		"show -h":    "-child",
		"resolve -h": "-body-file",
	} {
		if out, err := typed(t, "", strings.Fields(args)...); err != nil || !strings.Contains(out, want) {
			t.Errorf("riprap keys %s: got %q, %v, want a text with %q", args, out, err, want)
		}
	}
}

func TestArgumentsThatMakeNoSenseAreUsageErrors(t *testing.T) {
	for args, want := range map[string]string{
		"":                                      "want list, show or resolve",
		"lst":                                   `unknown command "lst", did you mean "list"?`,
		"frobnicate":                            `unknown command "frobnicate": want list, show or resolve`,
		"--store x list":                        `unknown command "--store"`,
		"list":                                  "--store is missing",
		"list now --store x":                    `unexpected argument "now"`,
		"list --stuk":                           "did you mean --stuck?",
		"show --store x":                        "want an ID",
		"show --store x a b":                    `unexpected argument "b"`,
		"show --store x order-17":               `"order-17" is no ID`,
		"show --store x 1234567":                `"1234567" is no ID`,
		"show --store x 12345678 --scope s":     "not both",
		"show --store x --scope s":              "belong together",
		"show --store x 12345678 --body --json": "exclude each other",
		"show --store x -- -12345678":           `"-12345678" is no ID`,
		"resolve --store x 12345678":            "want --free",
	} {
		out, err := typed(t, "", strings.Fields(args)...)
		if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("riprap keys %s: got %q, %v, want exit code %d and %q", args, out, err, exit.Usage, want)
		}
	}
}
