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
	"github.com/azconc/azconc/pkg/ptr"
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

// upload writes a blob.
func (c *client) upload(name, text string, when *optimistic.Conditions) error {
	return only(blobs.Upload(c.ctx, c.blob(name), strings.NewReader(text), &blobs.UploadOptions{Conditions: ptr.Value(when)}))
}

// download reads the page, and keeps its version.
func (c *client) download(when *optimistic.Conditions, etag *azcore.ETag) error {
	res, err := blobs.Download(c.ctx, c.blob("page.txt").BlobClient(), io.Discard, &blobs.DownloadOptions{Conditions: *when})
	if err == nil {
		*etag = res.ETag
	}
	return err
}

// read reads the page with its version.
func (c *client) read(into **optimistic.Version[[]byte]) (err error) {
	*into, err = optimistic.Read(c.ctx, blobs.NewBytes(c.blob("page.txt")), nil)
	return err
}

// replace replaces the version of the page that was read.
func (c *client) replace(base *optimistic.Version[[]byte], text string) error {
	return only(optimistic.Replace(c.ctx, blobs.NewBytes(c.blob("page.txt")), base, []byte(text), nil))
}

// page creates the page that a scene is about; it is not recorded.
func (s *stage) page() {
	s.box()
	s.must(s.crew.upload("page.txt", "first line\n", nil))
}

func editors(s *stage) {
	s.page()
	a, b := s.client("editor 1"), s.client("editor 2")
	var first, second *optimistic.Version[[]byte]
	a.does("opens the page", readCall, getCommand).ok(a.read(&first))
	b.does("opens the same version", readCall, getCommand).ok(b.read(&second))
	b.does("saves, if the page is as it was", replaceCall, putCommand+" --if-match ETAG").ok(b.replace(second, "first line\nediting 2\n"))
	a.does("saves over what has changed", replaceCall, putCommand+" --if-match ETAG").
		refused(optimistic.ErrConflict, a.replace(first, "first line\nediting 1\n"))
	add := func(_ context.Context, page *[]byte) error {
		*page = append(*page, "editing 1\n"...)
		return nil
	}
	a.does("edits the new version", updateCall, "azconc blob edit @/page.txt").
		ok(only(optimistic.Update(s.ctx, blobs.NewBytes(a.blob("page.txt")), add, nil)))
	b.does("saves without a condition: the text of editor 1 is lost", uploadCall, putCommand).
		ok(b.upload("page.txt", "first line\nediting 2\n", nil))
}

func conditions(s *stage) {
	s.page()
	a := s.client("client")
	var etag azcore.ETag
	yesterday := time.Now().Add(-24 * time.Hour)
	a.does("If-None-Match: * creates only", uploadCall, putCommand+" --if-none-match '*'").
		refused(optimistic.ErrExists, a.upload("page.txt", "again", &optimistic.Conditions{IfNoneMatch: "*"}))
	a.does("If-Modified-Since yesterday: has changed", downloadCall, getCommand+" --if-modified-since TIME").
		ok(a.download(&optimistic.Conditions{IfModifiedSince: yesterday}, &etag))
	a.does("If-None-Match with the version that it has", downloadCall, getCommand+" --if-none-match ETAG").
		refused(blobs.ErrNotModified, a.download(&optimistic.Conditions{IfNoneMatch: etag}, &etag))
	a.does("If-Unmodified-Since yesterday: has changed", uploadCall, putCommand+" --if-unmodified-since TIME").
		refused(optimistic.ErrConflict, a.upload("page.txt", "late", &optimistic.Conditions{IfUnmodifiedSince: yesterday}))
	a.does("If-Match with the version that it has", uploadCall, putCommand+" --if-match ETAG").
		ok(a.upload("page.txt", "in time", &optimistic.Conditions{IfMatch: etag}))
}

func blobOperations(s *stage) {
	s.page()
	ctx, a := s.ctx, s.client("client")
	page, copied, id := a.blob("page.txt"), a.blob("copy.txt").BlobClient(), "MDAwMQ=="
	a.does("stages a block: no ETag, no condition", "blobs.StageBlock", "azconc blob block put @/page.txt --id MDAwMQ== --file F").
		ok(only(blobs.StageBlock(ctx, page, id, []byte("a block"), nil)))
	a.does("commits the blocks", "blobs.CommitBlocks", "azconc blob block commit @/page.txt MDAwMQ==").
		ok(only(blobs.CommitBlocks(ctx, page, []string{id}, nil)))
	a.does("lists the blocks", "blobs.ListBlocks", "azconc blob block list @/page.txt")
	_, _, err := blobs.ListBlocks(ctx, page, blockblob.BlockListTypeAll, nil)
	a.ok(err)
	a.does("changes the metadata", "blobs.NewMetadata", "azconc blob metadata update @/page.txt a=1").
		ok(only(optimistic.Update(ctx, blobs.NewMetadata(page.BlobClient()), setMetadata, nil)))
	a.does("takes a snapshot", "blobs.Snapshot", "azconc blob snapshot @/page.txt").
		ok(only(blobs.Snapshot(ctx, a.container(), "page.txt", nil)))
	a.does("copies, if the source stays as it is", "blobs.Copy", "azconc blob copy @/page.txt @/copy.txt")
	res, err := blobs.Copy(ctx, copied, page.BlobClient(), nil)
	a.ok(err)
	a.does("aborts the copy, which has ended", "blobs.AbortCopy", "azconc blob abort-copy @/copy.txt ID").
		refused(blobs.ErrNoCopy, only(blobs.AbortCopy(ctx, copied, res.CopyID, nil)))
	a.does("deletes with the snapshots", "blobs.Delete", "azconc blob delete @/page.txt --snapshots").
		ok(only(blobs.Delete(ctx, page.BlobClient(), &blobs.DeleteOptions{Snapshots: true})))
}

func setMetadata(_ context.Context, m *map[string]string) error {
	*m = map[string]string{"a": "1"}
	return nil
}

func containerOperations(s *stage) {
	s.box()
	a := s.client("client")
	a.does("changes the metadata under the container's lease", "settings.NewContainerMetadata", "azconc container metadata update @ a=1").
		ok(only(optimistic.Update(s.ctx, settings.NewContainerMetadata(a.container()), setMetadata, nil)))
	a.does("reads the access policy", "settings.NewContainerACL", "azconc container acl show @").
		ok(only(optimistic.Read(s.ctx, settings.NewContainerACL(a.container()), nil)))
}
