package blob

import (
	"context"
	"io"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

// WholeContent reads the file that --file names, up to limit bytes, for requests that carry all content at once.
func WholeContent(f *cli.Factory, ctx context.Context, name string, limit int64) ([]byte, error) {
	content, size, err := f.OpenContent(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	var data []byte
	if size <= limit {
		if data, err = io.ReadAll(io.LimitReader(content, limit+1)); err != nil {
			return nil, err
		}
		size = int64(len(data))
	}
	if size > limit {
		return nil, fail.Usagef("--file %s is longer than %d bytes, the limit of one request", name, limit)
	}
	return data, nil
}
