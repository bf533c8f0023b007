package call

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
	"github.com/riprap-go/riprap/internal/memhttp"
)

// An example of docs/call.md: the script of the server, if there is one, the arguments, and what is printed.
var example = regexp.MustCompile("(?:<!-- script: (.*) -->\n)?```console\n\\$ riprap call (.*)\n((?:.*\n)*?)```")

func TestDocsShowWhatCallPrints(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/call.md")
	if err != nil {
		t.Fatal(err)
	}
	found := example.FindAllStringSubmatch(string(text), -1)
	if len(found) < 3 {
		t.Fatalf("docs/call.md has %d examples, want 3", len(found))
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("order.json", []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		t.Run(e[2], func(t *testing.T) {
			args := strings.Fields(strings.ReplaceAll(e[2], "'Content-Type: application/json'", "Content-Type:application/json"))
			if e[1] == "" {
				if got := parsed(t, args...).foresee().text(terminal.Screen{Width: terminal.Usual}); got != e[3] {
					t.Errorf("got\n%sdocs/call.md shows\n%s", got, e[3])
				}
				return
			}
			h := script(t, e[1])
			synctest.Test(t, func(t *testing.T) {
				server := memhttp.Serve(h)
				base := server.Transport()
				r := makeCall(t.Context(), t, base, args...)
				if got := r.stderr + r.stdout; got != e[3] {
					t.Errorf("got\n%sdocs/call.md shows\n%s", got, e[3])
				}
				base.CloseIdleConnections()
				server.Stop()
			})
		})
	}
}
