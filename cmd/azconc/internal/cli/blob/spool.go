package blob

import (
	"bytes"
	"context"
	"io"
	"os"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
)

// spooled updates a blob through a filter, with content of more than 1 MiB in files of a directory that only the user can
// read, below TMPDIR, and that is removed at the end. Two files are there at a time at most.
func spooled(ctx context.Context, dir string, on ref.Blob, filter change.Filter, content blobs.Blob[[]byte], update *optimistic.UpdateOptions) (optimistic.Result, error) {
	made := ""
	return optimistic.Update(ctx, blobs.Spooled{Blob: content, Dir: dir}, func(ctx context.Context, content *blobs.Content) (err error) {
		if made != "" { // by an earlier attempt
			_ = os.Remove(made)
		}
		base := optimistic.BaseOf(ctx)
		before, size, err := opened(*content)
		if err != nil {
			return err
		}
		out := &spool{dir: dir}
		err = filter.Stream(ctx, change.BaseContent{
			Resource: on.String(), Exists: base.Exists, ETag: string(base.ETag), Attempt: optimistic.EarlierRuns(ctx) + 1,
		}, before, size, out)
		_ = before.Close()
		if content.Path != "" {
			_ = os.Remove(content.Path) // another attempt reads the blob again
		}
		*content, err = out.end(err)
		made = content.Path
		return err
	}, update)
}

// opened returns the content as a stream, and its size.
func opened(content blobs.Content) (io.ReadCloser, int64, error) {
	if content.Path == "" {
		return io.NopCloser(bytes.NewReader(content.Data)), int64(len(content.Data)), nil
	}
	file, err := os.Open(content.Path)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// spool keeps what is written in memory, and in a file from spoolAbove bytes on.
type spool struct {
	dir  string
	data []byte
	file *os.File
}

const spoolAbove = 1 << 20

func (s *spool) Write(p []byte) (int, error) {
	if s.file == nil && len(s.data)+len(p) <= spoolAbove {
		s.data = append(s.data, p...)
		return len(p), nil
	}
	if s.file == nil {
		file, err := os.CreateTemp(s.dir, "new-")
		if err != nil {
			return 0, err
		}
		s.file = file
		if _, err := file.Write(s.data); err != nil {
			return 0, err
		}
		s.data = nil
	}
	return s.file.Write(p)
}

// end returns what was written. After an error there is nothing.
func (s *spool) end(err error) (blobs.Content, error) {
	if s.file == nil {
		return blobs.Content{Data: s.data}, err
	}
	path := s.file.Name()
	if closed := s.file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(path)
		return blobs.Content{}, err
	}
	return blobs.Content{Path: path}, nil
}
