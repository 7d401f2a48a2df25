package scene

import (
	"bytes"
	"context"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pessimistic/manual"
)

func filesScene(ctx context.Context, s *stage) {
	c := s.client("")
	s.create(ctx,
		func(ctx context.Context) error { _, err := c.share().Create(ctx, nil); return err },
		func(ctx context.Context) error { _, err := c.share().Delete(ctx, nil); return err })
	s.prepare(func() error {
		_, err := c.share().NewRootDirectoryClient().NewFileClient("page.txt").Create(ctx, 0, nil)
		return err
	})
	a, b := s.client("client 1"), s.client("client 2")
	if s.err != nil {
		return
	}
	const put = "azconc file put @/page.txt --file F"
	upload := func(c *client, text string) func() error {
		return func() error {
			_, err := files.Upload(ctx, c.share().NewRootDirectoryClient().NewFileClient("page.txt"), strings.NewReader(text), int64(len(text)), nil)
			return err
		}
	}
	file := func(c *client) pessimistic.Resource {
		return files.NewFile(c.share().NewRootDirectoryClient().NewFileClient("page.txt"))
	}
	s.ok(a, "writes the file under a lease", "files.Upload", put, upload(a, "one"))
	s.ok(b, "overwrites it: no ETag is compared, the last writer wins", "files.Upload", put, upload(b, "two"))
	var id string
	s.ok(a, "acquires the file's lease, which has no end", "files.NewFile", "azconc file lease acquire @/page.txt", func() error {
		got, err := manual.Acquire(ctx, file(a), &manual.AcquireOptions{Duration: pessimistic.Infinite})
		id = got.ID
		return err
	})
	s.refused(b, "writes without the lease", "files.Upload", put, nil, func() error {
		_, err := b.share().NewRootDirectoryClient().NewFileClient("page.txt").UploadRange(ctx, 0, streaming.NopCloser(strings.NewReader("333")), nil)
		return err
	})
	s.ok(b, "reads without the lease", "files.Download", "azconc file get @/page.txt", func() error {
		_, err := files.Download(ctx, b.share().NewRootDirectoryClient().NewFileClient("page.txt"), &bytes.Buffer{}, nil)
		return err
	})
	s.ok(a, "releases the lease", "manual.Release", "azconc file lease release @/page.txt --lease-id ID", func() error {
		return manual.Release(ctx, file(a), id, nil)
	})
	s.ok(a, "changes it: read and write under a lease", "files.Update", "azconc file update @/page.txt --exec CMD", func() error {
		_, err := files.Update(ctx, a.share().NewRootDirectoryClient().NewFileClient("page.txt"), func(_ context.Context, old []byte) ([]byte, error) {
			return append(old, "more"...), nil
		}, nil)
		return err
	})
}
