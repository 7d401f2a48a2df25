package scene

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/settings"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/manual"
)

// The calls and commands of the scenes about blobs.
const (
	updateCall    = "optimistic.Update"
	readCall      = "optimistic.Read"
	replaceCall   = "optimistic.Replace"
	uploadCall    = "blobs.Upload"
	downloadCall  = "blobs.Download"
	updateCommand = "azconc blob update @/page.txt --exec 'cat; echo more'"
	putCommand    = "azconc blob put @/page.txt --file page.txt"
	getCommand    = "azconc blob get @/page.txt"
)

// upload writes a blob and remembers its version.
func (c *client) upload(ctx context.Context, name, text string, when optimistic.Conditions, etag *azcore.ETag) func() error {
	return func() error {
		res, err := blobs.Upload(ctx, c.blob(name), strings.NewReader(text), &blobs.UploadOptions{Conditions: when, SendOptions: optimistic.SendOptions{Hooks: c.lane.hooks()}})
		if etag != nil && err == nil {
			*etag = res.ETag
		}
		return err
	}
}

// download reads a blob and remembers its version.
func (c *client) download(ctx context.Context, name string, when optimistic.Conditions, etag *azcore.ETag) func() error {
	return func() error {
		var b bytes.Buffer
		res, err := blobs.Download(ctx, c.blob(name).BlobClient(), &b, &blobs.DownloadOptions{Conditions: when})
		if etag != nil && err == nil {
			*etag = res.ETag
		}
		return err
	}
}

// read reads a page with its version.
func (c *client) read(ctx context.Context, into **optimistic.Version[[]byte]) func() error {
	return func() (err error) {
		*into, err = optimistic.Read(ctx, blobs.NewBytes(c.blob("page.txt")), nil)
		return err
	}
}

// replace replaces the version of a page that was read.
func (c *client) replace(ctx context.Context, base **optimistic.Version[[]byte], text string) func() error {
	return func() error {
		_, err := optimistic.Replace(ctx, blobs.NewBytes(c.blob("page.txt")), *base, []byte(text), &optimistic.WriteOptions{SendOptions: optimistic.SendOptions{Hooks: c.lane.hooks()}})
		return err
	}
}

// appendText adds to a page, on condition, as often as it takes.
func (c *client) appendText(ctx context.Context, name, more string) func() error {
	return func() error {
		_, err := optimistic.Update(ctx, blobs.NewBytes(c.blob(name)), func(_ context.Context, page *[]byte) error {
			*page = append(*page, more...)
			return nil
		}, &optimistic.UpdateOptions{SendOptions: optimistic.SendOptions{Hooks: c.lane.hooks()}})
		return err
	}
}

// page creates the page that a scene is about; it is not recorded.
func (s *stage) page(ctx context.Context) {
	c := s.box(ctx)
	s.prepare(func() error { return c.upload(ctx, "page.txt", "first line\n", optimistic.Conditions{}, nil)() })
}

func strategies(ctx context.Context, s *stage) {
	s.page(ctx)
	a := s.client("writer")
	s.ok(a, "optimistic: reads, and writes if nobody else has", updateCall, updateCommand, a.appendText(ctx, "page.txt", "more\n"))
	var id string
	s.ok(a, "pessimistic: takes the lease first", "pessimistic.Acquire", "azconc lock run @/page -- editor", func() error {
		got, err := manual.Acquire(ctx, pessimistic.NewBlob(a.blob("page.txt")), &manual.AcquireOptions{Duration: 15 * time.Second})
		id = got.ID
		return err
	})
	s.ok(a, "pessimistic: writes with the lease", uploadCall, putCommand+" --lease-id ID", func() error {
		return a.upload(ctx, "page.txt", "under the lease\n", optimistic.Conditions{LeaseID: id}, nil)()
	})
	s.ok(a, "pessimistic: gives the lease back", "manual.Release", "azconc blob lease release @/page.txt --lease-id ID", func() error {
		return manual.Release(ctx, pessimistic.NewBlob(a.blob("page.txt")), id, nil)
	})
	s.ok(a, "last writer wins: writes whatever is there", uploadCall, putCommand, a.upload(ctx, "page.txt", "the last\n", optimistic.Conditions{}, nil))
}

func editors(ctx context.Context, s *stage) {
	s.page(ctx)
	a, b := s.client("editor 1"), s.client("editor 2")
	var first, second *optimistic.Version[[]byte]
	s.ok(a, "opens the page", readCall, getCommand, a.read(ctx, &first))
	s.ok(b, "opens the same version", readCall, getCommand, b.read(ctx, &second))
	s.ok(b, "saves, if the page is as it was", replaceCall, putCommand+" --if-match ETAG", b.replace(ctx, &second, "first line\nediting 2\n"))
	s.refused(a, "saves over what has changed", replaceCall, putCommand+" --if-match ETAG", optimistic.ErrConflict, a.replace(ctx, &first, "first line\nediting 1\n"))
	s.ok(a, "edits the new version", updateCall, "azconc blob edit @/page.txt", a.appendText(ctx, "page.txt", "editing 1\n"))
}

func lastWriterWins(ctx context.Context, s *stage) {
	s.page(ctx)
	a, b := s.client("editor 1"), s.client("editor 2")
	s.ok(a, "opens the page", downloadCall, getCommand, a.download(ctx, "page.txt", optimistic.Conditions{}, nil))
	s.ok(b, "opens the same version", downloadCall, getCommand, b.download(ctx, "page.txt", optimistic.Conditions{}, nil))
	s.ok(a, "saves without a condition", uploadCall, putCommand, a.upload(ctx, "page.txt", "first line\nediting 1\n", optimistic.Conditions{}, nil))
	s.ok(b, "saves without a condition: the text of editor 1 is lost", uploadCall, putCommand, b.upload(ctx, "page.txt", "first line\nediting 2\n", optimistic.Conditions{}, nil))
}

func staleETag(ctx context.Context, s *stage) {
	s.page(ctx)
	a, b := s.client("writer 1"), s.client("writer 2")
	var old *optimistic.Version[[]byte]
	s.ok(a, "reads the version", readCall, getCommand, a.read(ctx, &old))
	s.ok(b, "writes", uploadCall, putCommand, b.upload(ctx, "page.txt", "changed\n", optimistic.Conditions{}, nil))
	s.refused(a, "writes with the ETag that it has read", replaceCall, putCommand+" --if-match ETAG", optimistic.ErrConflict, a.replace(ctx, &old, "stale\n"))
}

func conditions(ctx context.Context, s *stage) {
	s.page(ctx)
	a := s.client("client")
	var now azcore.ETag
	past, future := time.Now().Add(-24*time.Hour), time.Now().Add(-23*time.Hour)
	s.refused(a, "If-None-Match: * creates only", uploadCall, putCommand+" --if-none-match '*'", optimistic.ErrExists,
		a.upload(ctx, "page.txt", "again", optimistic.Conditions{IfNoneMatch: "*"}, nil))
	s.ok(a, "If-Modified-Since yesterday: has changed", downloadCall, getCommand+" --if-modified-since TIME", a.download(ctx, "page.txt", optimistic.Conditions{IfModifiedSince: past}, &now))
	s.refused(a, "If-None-Match with the version that it has", downloadCall, getCommand+" --if-none-match ETAG", blobs.ErrNotModified, func() error {
		return a.download(ctx, "page.txt", optimistic.Conditions{IfNoneMatch: now}, nil)()
	})
	s.refused(a, "If-Unmodified-Since yesterday: has changed", uploadCall, putCommand+" --if-unmodified-since TIME", optimistic.ErrConflict,
		a.upload(ctx, "page.txt", "late", optimistic.Conditions{IfUnmodifiedSince: future}, nil))
	s.ok(a, "If-Match with the version that it has", uploadCall, putCommand+" --if-match ETAG", func() error {
		return a.upload(ctx, "page.txt", "in time", optimistic.Conditions{IfMatch: now}, nil)()
	})
}

func lostResponse(ctx context.Context, s *stage) {
	s.page(ctx)
	first := func(write int) bool { return write == 1 }
	a, b, c := s.lossy("writer", first), s.lossy("creator 1", first), s.client("creator 2")
	s.ok(a, "appends a line; the response to its write is lost", updateCall, updateCommand, a.appendText(ctx, "page.txt", "once\n"))
	const create = "azconc blob put @/once.txt --file F --if-none-match '*'"
	s.ok(b, "creates a blob; the response is lost", uploadCall, create, b.upload(ctx, "once.txt", "1", optimistic.Conditions{IfNoneMatch: "*"}, nil))
	s.refused(c, "creates it too", uploadCall, create, optimistic.ErrExists, c.upload(ctx, "once.txt", "2", optimistic.Conditions{IfNoneMatch: "*"}, nil))
}

func blobOperations(ctx context.Context, s *stage) {
	s.page(ctx)
	a := s.client("client")
	big, id := a.blob("page.txt"), "MDAwMQ=="
	s.ok(a, "stages a block: no ETag, no condition", "blobs.StageBlock", "azconc blob block put @/page.txt --id MDAwMQ== --file F", func() error {
		_, err := blobs.StageBlock(ctx, big, id, []byte("a block"), nil)
		return err
	})
	s.ok(a, "commits the blocks", "blobs.CommitBlocks", "azconc blob block commit @/page.txt MDAwMQ==", func() error {
		_, err := blobs.CommitBlocks(ctx, big, []string{id}, nil)
		return err
	})
	s.ok(a, "lists the blocks", "blobs.ListBlocks", "azconc blob block list @/page.txt", func() error {
		_, _, err := blobs.ListBlocks(ctx, big, blockblob.BlockListTypeAll, nil)
		return err
	})
	s.ok(a, "changes the metadata", "blobs.NewMetadata", "azconc blob metadata update @/page.txt a=1", func() error {
		_, err := optimistic.Update(ctx, blobs.NewMetadata(big.BlobClient()), func(_ context.Context, m *map[string]string) error {
			if *m == nil {
				*m = map[string]string{}
			}
			(*m)["a"] = "1"
			return nil
		}, nil)
		return err
	})
	s.ok(a, "takes a snapshot", "blobs.Snapshot", "azconc blob snapshot @/page.txt", func() error {
		_, err := blobs.Snapshot(ctx, a.container(), "page.txt", nil)
		return err
	})
	var copied blobs.CopyResult
	s.ok(a, "copies, if the source stays as it is", "blobs.Copy", "azconc blob copy @/page.txt @/copy.txt", func() (err error) {
		copied, err = blobs.Copy(ctx, a.blob("copy.txt").BlobClient(), big.BlobClient(), nil)
		return err
	})
	s.refused(a, "aborts the copy, which has ended", "blobs.AbortCopy", "azconc blob abort-copy @/copy.txt ID", blobs.ErrNoCopy, func() error {
		_, err := blobs.AbortCopy(ctx, a.blob("copy.txt").BlobClient(), copied.CopyID, nil)
		return err
	})
	s.ok(a, "deletes with the snapshots", "blobs.Delete", "azconc blob delete @/page.txt --snapshots", func() error {
		_, err := blobs.Delete(ctx, big.BlobClient(), &blobs.DeleteOptions{Snapshots: true})
		return err
	})
}

func containerOperations(ctx context.Context, s *stage) {
	s.box(ctx)
	a := s.client("client")
	s.ok(a, "changes the metadata under the container's lease", "settings.NewContainerMetadata", "azconc container metadata update @ a=1", func() error {
		_, err := optimistic.Update(ctx, settings.NewContainerMetadata(a.container()), func(_ context.Context, m *map[string]string) error {
			if *m == nil {
				*m = map[string]string{}
			}
			(*m)["a"] = "1"
			return nil
		}, nil)
		return err
	})
	s.ok(a, "reads the access policy", "settings.NewContainerACL", "azconc container acl show @", func() error {
		_, err := optimistic.Read(ctx, settings.NewContainerACL(a.container()), nil)
		return err
	})
}
