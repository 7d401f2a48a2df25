package scene

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/settings"
)

// The calls and commands of several scenes.
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

// upload writes a blob. Its options are looked at when the act is played.
func (c *client) upload(name, text string, o *blobs.UploadOptions) func() error {
	return func() error { return only(blobs.Upload(c.ctx, c.blob(name), strings.NewReader(text), o)) }
}

// download reads the page, and keeps its version.
func (c *client) download(o *blobs.DownloadOptions, etag *azcore.ETag) func() error {
	return func() error {
		res, err := blobs.Download(c.ctx, c.blob("page.txt").BlobClient(), io.Discard, o)
		if err == nil {
			*etag = res.ETag
		}
		return err
	}
}

// read reads the page with its version.
func (c *client) read(into **optimistic.Version[[]byte]) func() error {
	return func() (err error) {
		*into, err = optimistic.Read(c.ctx, blobs.NewBytes(c.blob("page.txt")), nil)
		return err
	}
}

// replace replaces the version of the page that was read.
func (c *client) replace(base **optimistic.Version[[]byte], text string) func() error {
	return func() error {
		return only(optimistic.Replace(c.ctx, blobs.NewBytes(c.blob("page.txt")), *base, []byte(text), nil))
	}
}

// page creates the page that a scene is about; it is not recorded.
func (s *stage) page() {
	s.box()
	s.must(s.crew.upload("page.txt", "first line\n", nil)())
}

func editors(s *stage) {
	s.page()
	a, b := s.client("editor 1"), s.client("editor 2")
	var first, second *optimistic.Version[[]byte]
	s.ok(a, "opens the page", readCall, getCommand, a.read(&first))
	s.ok(b, "opens the same version", readCall, getCommand, b.read(&second))
	s.ok(b, "saves, if the page is as it was", replaceCall, putCommand+" --if-match ETAG", b.replace(&second, "first line\nediting 2\n"))
	s.refused(a, "saves over what has changed", replaceCall, putCommand+" --if-match ETAG", optimistic.ErrConflict, a.replace(&first, "first line\nediting 1\n"))
	s.ok(a, "edits the new version", updateCall, "azconc blob edit @/page.txt", func() error {
		return only(optimistic.Update(s.ctx, blobs.NewBytes(a.blob("page.txt")), func(_ context.Context, page *[]byte) error {
			*page = append(*page, "editing 1\n"...)
			return nil
		}, nil))
	})
	s.ok(b, "saves without a condition: the text of editor 1 is lost", uploadCall, putCommand, b.upload("page.txt", "first line\nediting 2\n", nil))
}

func conditions(s *stage) {
	s.page()
	a := s.client("client")
	var etag azcore.ETag
	var same blobs.UploadOptions
	var other blobs.DownloadOptions
	yesterday := time.Now().Add(-24 * time.Hour)
	s.refused(a, "If-None-Match: * creates only", uploadCall, putCommand+" --if-none-match '*'", optimistic.ErrExists,
		a.upload("page.txt", "again", &blobs.UploadOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}}))
	s.ok(a, "If-Modified-Since yesterday: has changed", downloadCall, getCommand+" --if-modified-since TIME",
		a.download(&blobs.DownloadOptions{Conditions: optimistic.Conditions{IfModifiedSince: yesterday}}, &etag))
	same.Conditions.IfMatch, other.Conditions.IfNoneMatch = etag, etag
	s.refused(a, "If-None-Match with the version that it has", downloadCall, getCommand+" --if-none-match ETAG", blobs.ErrNotModified, a.download(&other, &etag))
	s.refused(a, "If-Unmodified-Since yesterday: has changed", uploadCall, putCommand+" --if-unmodified-since TIME", optimistic.ErrConflict,
		a.upload("page.txt", "late", &blobs.UploadOptions{Conditions: optimistic.Conditions{IfUnmodifiedSince: yesterday}}))
	s.ok(a, "If-Match with the version that it has", uploadCall, putCommand+" --if-match ETAG", a.upload("page.txt", "in time", &same))
}

func blobOperations(s *stage) {
	s.page()
	ctx, a := s.ctx, s.client("client")
	page, copied, id := a.blob("page.txt"), a.blob("copy.txt").BlobClient(), "MDAwMQ=="
	s.ok(a, "stages a block: no ETag, no condition", "blobs.StageBlock", "azconc blob block put @/page.txt --id MDAwMQ== --file F", func() error {
		return only(blobs.StageBlock(ctx, page, id, []byte("a block"), nil))
	})
	s.ok(a, "commits the blocks", "blobs.CommitBlocks", "azconc blob block commit @/page.txt MDAwMQ==", func() error {
		return only(blobs.CommitBlocks(ctx, page, []string{id}, nil))
	})
	s.ok(a, "lists the blocks", "blobs.ListBlocks", "azconc blob block list @/page.txt", func() error {
		_, _, err := blobs.ListBlocks(ctx, page, blockblob.BlockListTypeAll, nil)
		return err
	})
	s.ok(a, "changes the metadata", "blobs.NewMetadata", "azconc blob metadata update @/page.txt a=1", func() error {
		return only(optimistic.Update(ctx, blobs.NewMetadata(page.BlobClient()), setMetadata, nil))
	})
	s.ok(a, "takes a snapshot", "blobs.Snapshot", "azconc blob snapshot @/page.txt", func() error {
		return only(blobs.Snapshot(ctx, a.container(), "page.txt", nil))
	})
	var res blobs.CopyResult
	s.ok(a, "copies, if the source stays as it is", "blobs.Copy", "azconc blob copy @/page.txt @/copy.txt", func() (err error) {
		res, err = blobs.Copy(ctx, copied, page.BlobClient(), nil)
		return err
	})
	s.refused(a, "aborts the copy, which has ended", "blobs.AbortCopy", "azconc blob abort-copy @/copy.txt ID", blobs.ErrNoCopy, func() error {
		return only(blobs.AbortCopy(ctx, copied, res.CopyID, nil))
	})
	s.ok(a, "deletes with the snapshots", "blobs.Delete", "azconc blob delete @/page.txt --snapshots", func() error {
		return only(blobs.Delete(ctx, page.BlobClient(), &blobs.DeleteOptions{Snapshots: true}))
	})
}

func setMetadata(_ context.Context, m *map[string]string) error {
	*m = map[string]string{"a": "1"}
	return nil
}

func containerOperations(s *stage) {
	s.box()
	a := s.client("client")
	s.ok(a, "changes the metadata under the container's lease", "settings.NewContainerMetadata", "azconc container metadata update @ a=1", func() error {
		return only(optimistic.Update(s.ctx, settings.NewContainerMetadata(a.container()), setMetadata, nil))
	})
	s.ok(a, "reads the access policy", "settings.NewContainerACL", "azconc container acl show @", func() error {
		return only(optimistic.Read(s.ctx, settings.NewContainerACL(a.container()), nil))
	})
}
