//go:build linux

package integration

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An image is what a Dockerfile makes: a folder, and how a program is started in it.
type image struct {
	dir         string
	user, group uint32
	workDir     string
	volumes     []string
	stop        string
	health      []string
	entrypoint  []string
}

// make takes the steps of a Dockerfile whose last stage is from scratch. The stage before that is this machine, with the
// repository where its COPY . . puts it and a folder of the test for /out.
func (i *image) make(t *testing.T, text string) {
	t.Helper()
	scratch := false
	out := t.TempDir()
	work := ""
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		fields := strings.Fields(rest)
		known := true
		switch {
		case word == "" || strings.HasPrefix(word, "#"):
		case word == "FROM":
			scratch = rest == "scratch"
			known = scratch || strings.HasPrefix(rest, "golang:") && strings.HasSuffix(rest, " AS build")
		case !scratch && word == "WORKDIR":
			work = rest
		case !scratch && word == "COPY":
			known = rest == ". ." && work != ""
		case !scratch && word == "RUN":
			if said, err := shell(t, 10*time.Minute, strings.ReplaceAll(rest, "/out/", out+"/")); err != nil {
				t.Fatalf("RUN %s: %v\n%s", rest, err, said)
			}
		case word == "COPY":
			known = i.copy(t, out, fields)
		case word == "USER":
			id, group, _ := strings.Cut(rest, ":")
			i.user, i.group = number(t, id), number(t, group)
		case word == "WORKDIR":
			i.workDir = rest
		case word == "VOLUME":
			i.volumes = fields
		case word == "STOPSIGNAL":
			i.stop = rest
		case word == "HEALTHCHECK":
			_, command, _ := strings.Cut(rest, "CMD ")
			known = json.Unmarshal([]byte(command), &i.health) == nil
		case word == "ENTRYPOINT":
			known = json.Unmarshal([]byte(rest), &i.entrypoint) == nil
		default:
			known = word == "EXPOSE"
		}
		if !known {
			t.Fatalf("the test cannot take this step of the Dockerfile: %s", line)
		}
	}
	if !scratch || len(i.entrypoint) == 0 {
		t.Fatalf("the Dockerfile makes no image from scratch with an ENTRYPOINT:\n%s", text)
	}
}

// copy copies a file or an empty folder from the stage before.
func (i *image) copy(t *testing.T, out string, fields []string) bool {
	t.Helper()
	owner := "0:0"
	var paths []string
	for _, f := range fields {
		if as, ok := strings.CutPrefix(f, "--chown="); ok {
			owner = as
		} else if f != "--from=build" {
			paths = append(paths, f)
		}
	}
	if len(paths) != 2 || !slices.Contains(fields, "--from=build") {
		return false
	}
	from, to := paths[0], filepath.Join(i.dir, paths[1])
	if inOut, ok := strings.CutPrefix(from, "/out/"); ok {
		from = filepath.Join(out, inOut)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.CommandContext(t.Context(), "cp", "-aL", from, to).CombinedOutput(); err != nil {
		t.Fatalf("COPY %s: %v\n%s", strings.Join(fields, " "), err, said)
	}
	user, group, _ := strings.Cut(owner, ":")
	if err := os.Chown(to, int(number(t, user)), int(number(t, group))); err != nil {
		t.Fatal(err)
	}
	return true
}

func number(t *testing.T, s string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		t.Fatalf("an image from scratch knows no names of users and groups, only numbers: %v", err)
	}
	return uint32(n)
}

// files lists what is in the image.
func (i *image) files(t *testing.T) (all []string) {
	t.Helper()
	err := filepath.WalkDir(i.dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, strings.TrimPrefix(name, i.dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (i *image) String() string {
	return fmt.Sprintf("%s as %d:%d in %s", strings.Join(i.entrypoint, " "), i.user, i.group, cmp.Or(i.workDir, "/"))
}
