package call

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
)

// A sink is where the answer goes. A file is written under another name beside its own, which it gets when it is whole:
// a part of an answer never passes for all of it.
type sink struct {
	w    io.Writer
	file *os.File // under its other name; nil once it is done with
	name string   // its own
	err  error    // why a write failed
}

// sink opens what the answer goes to.
func (o *order) sink(ctx context.Context, stdout io.Writer) (*sink, error) {
	if o.file == "" || o.file == "-" {
		return &sink{w: stdout}, nil
	}
	name, mode := o.file, fs.FileMode(0o666)
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("-o: %s is a directory", o.file)
	case err == nil && !info.Mode().IsRegular(): // /dev/null, a pipe
		f, err := openOnce(ctx, name, os.O_WRONLY)
		if err != nil {
			return nil, fmt.Errorf("-o: %w", err)
		}
		return &sink{w: f, file: f}, nil
	case err == nil:
		mode = info.Mode().Perm()
	}
	beside := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+"."+rand.Text()[:8])
	f, err := os.OpenFile(beside, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		// The reason without the name that nobody has asked for.
		if path, ok := errors.AsType[*fs.PathError](err); ok {
			err = path.Err
		}
		return nil, fmt.Errorf("-o: cannot create %s: %w", o.file, err)
	}
	return &sink{w: f, file: f, name: name}, nil
}

// Write is what the answer is copied to.
func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil {
		s.err = err
	}
	return n, err
}

// copy writes the answer and returns how much of its body there was.
func (s *sink) copy(resp *http.Response, header bool) (int64, error) {
	if header {
		var b bytes.Buffer
		fmt.Fprintf(&b, "%s %s\r\n", resp.Proto, resp.Status)
		resp.Header.Write(&b)
		b.WriteString("\r\n")
		if _, err := s.Write(b.Bytes()); err != nil {
			return 0, err
		}
	}
	return io.Copy(s, resp.Body)
}

// keep gives a file its own name.
func (s *sink) keep() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if err != nil || s.name == "" {
		return err
	}
	if err := os.Rename(s.file.Name(), s.name); err != nil {
		return err
	}
	s.file = nil
	return nil
}

// drop removes a file that was not kept.
func (s *sink) drop() {
	if s.file == nil {
		return
	}
	s.file.Close()
	if s.name != "" {
		os.Remove(s.file.Name())
	}
}
