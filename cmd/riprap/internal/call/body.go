package call

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// memory is the most of a body that is kept there, because what it comes from can be read only once.
const memory = 32 << 20

func mebibytes(n int) string { return fmt.Sprintf("%d MiB", n>>20) }

// A body is that of the request: its parts one after another. The zero body is none.
type body struct {
	parts []part
	size  int64
}

// A part is text, or a file that is opened anew for each attempt and never in memory as a whole. It must not change
// meanwhile: what is sent again is the same request, and under the same key.
type part struct {
	text []byte
	file string
	size int64
	time time.Time // of its last change
}

// readBody makes a body of what -d says.
func readBody(ctx context.Context, data []string, stdin io.Reader) (b body, err error) {
	fromStdin := false
	for i, text := range data {
		if i > 0 {
			b.add([]byte("&"))
		}
		name, from := strings.CutPrefix(text, "@")
		switch {
		case !from:
			b.add([]byte(text))
		case name == "":
			return body{}, errors.New("-d @: want the name of a file behind @, or - for stdin")
		case name == "-" && fromStdin:
			return body{}, errors.New("-d @-: stdin can be read only once")
		case name == "-":
			fromStdin = true
			content, err := readOnce(ctx, stdin)
			if err != nil {
				return body{}, fmt.Errorf("-d @-: %w", err)
			}
			b.add(content)
		default:
			if err := b.addFile(ctx, name); err != nil {
				return body{}, fmt.Errorf("-d @FILE: %w", err)
			}
		}
	}
	return b, nil
}

func (b *body) add(text []byte) {
	b.size += int64(len(text))
	b.parts = append(b.parts, part{text: text})
}

func (b *body) addFile(ctx context.Context, name string) error {
	f, err := openOnce(ctx, name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory", name)
	case !info.Mode().IsRegular(): // a pipe, for example
		content, err := readOnce(ctx, f)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		b.add(content)
	default:
		b.size += info.Size()
		b.parts = append(b.parts, part{file: name, size: info.Size(), time: info.ModTime()})
	}
	return nil
}

// openOnce opens a file, until ctx ends: a pipe without anybody at its other end is never open.
func openOnce(ctx context.Context, name string, flag int) (*os.File, error) {
	return until(ctx, func() (*os.File, error) { return os.OpenFile(name, flag, 0) })
}

// readOnce reads what cannot be read again, until ctx ends: a Read of a terminal may never return.
func readOnce(ctx context.Context, r io.Reader) ([]byte, error) {
	return until(ctx, func() ([]byte, error) {
		content, err := io.ReadAll(io.LimitReader(r, memory+1))
		if err == nil && len(content) > memory {
			err = fmt.Errorf("it is more than %s: put it into a file, which is read anew for each attempt", mebibytes(memory))
		}
		return content, err
	})
}

// until returns what f returns, or leaves it alone when ctx ends. It is for what cannot be interrupted.
func until[T any](ctx context.Context, f func() (T, error)) (result T, err error) {
	over := make(chan struct{})
	var got T
	var failed error
	go func() {
		defer close(over)
		got, failed = f()
	}()
	select {
	case <-over:
		return got, failed
	case <-ctx.Done():
		return result, ctx.Err()
	}
}

// put gives the body to a request.
func (b *body) put(req *http.Request) (err error) {
	if len(b.parts) == 0 {
		return nil
	}
	req.ContentLength = b.size
	req.GetBody = b.open
	if b.size == 0 {
		req.GetBody = func() (io.ReadCloser, error) { return http.NoBody, nil }
	}
	req.Body, err = req.GetBody()
	return err
}

// open returns a reader of the whole body.
func (b *body) open() (io.ReadCloser, error) {
	var all []io.Reader
	var files readers
	for _, p := range b.parts {
		if p.file == "" {
			all = append(all, bytes.NewReader(p.text))
			continue
		}
		f, err := p.open()
		if err != nil {
			files.Close()
			return nil, err
		}
		files.open = append(files.open, f)
		all = append(all, f)
	}
	if len(files.open) == 0 { // net/http sends what it knows to be in memory in one packet with the header
		return io.NopCloser(bytes.NewReader(b.text())), nil
	}
	files.Reader = io.MultiReader(all...)
	return &files, nil
}

// open opens the file again.
func (p *part) open() (*os.File, error) {
	f, err := os.Open(p.file)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (info.Size() != p.size || !info.ModTime().Equal(p.time)) {
		err = fmt.Errorf("%s has changed since the call began", p.file)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// text is all parts that are text.
func (b *body) text() []byte {
	if len(b.parts) == 1 {
		return b.parts[0].text
	}
	var all []byte
	for _, p := range b.parts {
		all = append(all, p.text...)
	}
	return all
}

// readers read several files one after another.
type readers struct {
	io.Reader
	open []*os.File
}

func (r *readers) Close() error {
	var all []error
	for _, f := range r.open {
		all = append(all, f.Close())
	}
	return errors.Join(all...)
}
