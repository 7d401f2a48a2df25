package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"math"
	"mime"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// ContentType returns the default content type of a new blob of this name.
func ContentType(name string) string {
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

// OpenContent opens the file that a flag names, or stdin for "-", and returns its size, -1 if that is unknown.
func (f *Factory) OpenContent(ctx context.Context, flag, name string) (io.ReadCloser, int64, error) {
	if name == "-" {
		return untilEnd(ctx, f.In), -1, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = fail.Usagef("%s %s is a directory", flag, name)
	}
	switch {
	case err != nil:
		_ = file.Close()
		return nil, 0, err
	case !info.Mode().IsRegular():
		return file, -1, nil
	}
	return file, info.Size(), nil
}

// WholeContent reads the file that --file names, up to limit bytes, for requests that carry all content at once.
func (f *Factory) WholeContent(ctx context.Context, name string, limit int64) ([]byte, error) {
	return f.ContentUpTo(ctx, "--file", name, limit, "the limit of one request")
}

// ContentUpTo reads the file that a flag names, up to limit bytes. A longer file is a usage error, which says what has the limit.
func (f *Factory) ContentUpTo(ctx context.Context, flag, name string, limit int64, what string) ([]byte, error) {
	content, size, err := f.OpenContent(ctx, flag, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	var data []byte
	if size <= limit {
		if data, err = ReadSized(io.LimitReader(content, limit+1), size); err != nil {
			return nil, err
		}
		size = int64(len(data))
	}
	if size > limit {
		return nil, fail.Usagef("%s %s is longer than %d bytes, %s", flag, name, limit, what)
	}
	return data, nil
}

// WholeFile reads the file that --file names, however long it is.
func (f *Factory) WholeFile(ctx context.Context, name string) ([]byte, error) {
	return f.ContentUpTo(ctx, "--file", name, math.MaxInt64-1, "")
}

// ReadSized reads everything, into one buffer if it is as long as expected. The size is negative if it is unknown.
func ReadSized(r io.Reader, size int64) ([]byte, error) {
	data := bytes.NewBuffer(make([]byte, 0, max(size, 0)+bytes.MinRead))
	_, err := data.ReadFrom(r)
	return data.Bytes(), err
}

// Into calls read to write content to stdout or to a file. The file appears under its name only when the content is
// complete. restart discards what was written so far; it is nil if that is impossible. stdout reports whether the
// content went to stdout.
func (f *Factory) Into(name string, p *Progress, read func(to io.Writer, restart func() error) error) (stdout bool, err error) {
	defer p.End()
	if name == "" || name == "-" {
		p.hidden = f.OutTerminal // which shows the content itself
		return true, read(f.Content(), nil)
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	mode := fs.FileMode(0o666)
	switch info, err := os.Stat(name); {
	case err == nil && info.IsDir():
		return false, fail.Usagef("--file %s is a directory", name)
	case err == nil && !info.Mode().IsRegular(): // a device or a pipe, which cannot be replaced
		out, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return false, err
		}
		return false, cmp.Or(read(out, nil), out.Close())
	case err == nil:
		mode = info.Mode().Perm()
	}
	temp := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%s.part", filepath.Base(name), rand.Text()[:8]))
	out, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return false, err
	}
	err = read(out, func() error {
		_, err := out.Seek(0, io.SeekStart)
		return cmp.Or(err, out.Truncate(0))
	})
	if err == nil {
		err = out.Sync()
	}
	if err = cmp.Or(err, out.Close()); err == nil {
		err = os.Rename(temp, name)
	}
	if err != nil {
		_ = os.Remove(temp)
	}
	return false, err
}

// Downloaded is the result of a read into a file.
type Downloaded struct {
	Outcome      string    `json:"outcome"`
	Resource     string    `json:"resource"`
	File         string    `json:"file"`
	ETag         string    `json:"etag"`
	LastModified time.Time `json:"last_modified"`
	Size         int64     `json:"size"`
	Restarts     int       `json:"restarts"`
	Cost
}

func (r Downloaded) Text(w io.Writer) {
	fmt.Fprintf(w, "%s %s etag %s, %s in %s\n", r.Outcome, r.Resource, r.ETag, show.Bytes(r.Size), r.File)
}

// CheckContentAlone refuses a form of the result if the content goes to stdout too: name is that of --file.
func (f *Factory) CheckContentAlone(name string) error {
	if form := f.output.Asked(); form != "" && (name == "" || name == "-") {
		return fail.WithHint(fail.Usagef("%s and the content cannot both go to stdout", form), "--file writes the content elsewhere")
	}
	return nil
}

// untilEnd reads r until ctx ends, so that a command waiting for stdin can be stopped. The pending read itself cannot be
// stopped, and ends with the process.
func untilEnd(ctx context.Context, r io.Reader) io.ReadCloser {
	out, in := io.Pipe()
	stop := context.AfterFunc(ctx, func() { in.CloseWithError(context.Cause(ctx)) })
	go func() {
		_, err := io.Copy(in, r)
		in.CloseWithError(err)
		stop()
	}()
	return out
}
