package call

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/internal/memhttp"
)

// names are those of all files in a folder.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestFileHoldsTheWholeAnswerOrWhatItHeldBefore(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		before string // in the file; empty: there is none
		after  string
		code   int
	}{
		"an answer":                     {"503, 200 body=new", "", "new", 0},
		"an answer in place of another": {"200 body=new", "before", "new", 0},
		"an error":                      {"404 body=nothing", "before", "nothing", 1},
		"an empty answer":               {`200 body=""`, "before", "", 0},
		"cut short":                     {"cut=3 body=abcdef", "before", "before", 1},
		"cut short, and no file before": {"cut=3 body=abcdef", "", "", 1},
		"no answer":                     {"close", "before", "before", 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "answer")
			if tt.before != "" {
				if err := os.WriteFile(file, []byte(tt.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := inMemory(t, script(t, tt.script), "URL --attempts 2 -o "+file)
			if got := r.code(t); got != tt.code || r.stdout != "" {
				t.Errorf("got exit code %d and stdout %q, want %d and nothing", got, r.stdout, tt.code)
			}
			text, err := os.ReadFile(file)
			missing := tt.before == "" && tt.after == ""
			if missing != errors.Is(err, fs.ErrNotExist) || string(text) != tt.after {
				t.Errorf("the file holds %q (%v), want %q", text, err, tt.after)
			}
			if all := names(t, dir); slices.ContainsFunc(all, func(s string) bool { return s != "answer" }) {
				t.Errorf("beside the file there are %q, want nothing", all)
			}
			if info, err := os.Stat(file); err == nil && tt.before != "" && info.Mode().Perm() != 0o600 {
				t.Errorf("the file's mode is %v, want that of the one before", info.Mode())
			}
		})
	}
}

func TestFileIsNotThereWhileTheAnswerComes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "answer")
	seen := false
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("half"))
		http.NewResponseController(w).Flush()
		_, err := os.Stat(file)
		seen = err == nil
		w.Write([]byte("whole"))
	})
	r := inMemory(t, h, "URL -o "+file)
	if got, err := os.ReadFile(file); string(got) != "halfwhole" || seen || r.code(t) != 0 {
		t.Errorf("got %q (%v), seen before its end: %v", got, err, seen)
	}
}

func TestAnswerThroughALinkGoesToWhatItPointsTo(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	inMemory(t, script(t, "200 body=new"), "URL -o "+link)
	info, err := os.Lstat(link)
	if text, _ := os.ReadFile(file); string(text) != "new" || err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the file holds %q, the link is %v (%v)", text, info.Mode(), err)
	}
}

// Devices are written to, too, but a test that fails must not put a file in the place of one.
func TestPipeIsWrittenTo(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	name := fmt.Sprintf("/dev/fd/%d", w.Fd())
	if _, err := os.Stat(name); err != nil {
		t.Skip(err)
	}
	got := inMemory(t, script(t, "200 body=new"), "URL -o "+name)
	w.Close()
	if text, err := io.ReadAll(r); string(text) != "new" || got.stdout != "" || got.code(t) != 0 {
		t.Errorf("got exit code %d, %q in the pipe (%v) and %q on stdout, want 0 and all in the pipe", got.code(t), text, err, got.stdout)
	}
}

func TestNothingIsSentIfTheAnswerHasNoPlace(t *testing.T) {
	dir := t.TempDir()
	for name, file := range map[string]string{
		"a folder":             dir,
		"a folder that is not": filepath.Join(dir, "no", "file"),
	} {
		t.Run(name, func(t *testing.T) {
			h := script(t, "200")
			r := inMemory(t, h, "URL -o "+file)
			if _, ok := errors.AsType[*exit.UsageError](r.err); !ok || !strings.Contains(r.err.Error(), file) {
				t.Errorf("got error %v, want a usage error that names the file", r.err)
			}
			if n := len(h.Arrivals("")); n > 0 {
				t.Errorf("%d requests were sent, want none", n)
			}
		})
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestOutputThatCannotBeWrittenIsAnErrorOfItsOwn(t *testing.T) {
	h := script(t, "200 body=ok")
	synctest.Test(t, func(t *testing.T) {
		server := memhttp.Serve(h)
		base := server.Transport()
		o, err := parse(t.Context(), []string{"-s", memhttp.URL}, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = o.do(t.Context(), base, full{}, full{})
		if want := "riprap call: the answer cannot be written: no space left"; err == nil || err.Error() != want || exit.Code(err) != 1 {
			t.Errorf("got error %v, want %s", err, want)
		}
		base.CloseIdleConnections()
		server.Stop()
	})
}
