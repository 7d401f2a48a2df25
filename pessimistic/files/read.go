package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
)

// rangeSize is the number of bytes read or written at a time: the most that one request may write (REST: "Put Range").
const rangeSize = 4 << 20

// DownloadOptions configures Download. The zero value selects the defaults.
type DownloadOptions struct {
	// LeaseID is the id of a lease that the caller holds on the file. Since nobody else can write under it, versions
	// are not compared. Defaults to none.
	LeaseID string

	// Restart is called when the file has changed during the read, to discard what was written so far: the content then
	// starts from the beginning. Defaults to none: output cannot be taken back, so a change is an error.
	Restart func() error

	// Restarts bounds how often the read restarts; a negative value means never. Defaults to 3.
	Restarts int

	// IgnoreMetadata identifies a version by the last write time and the length instead of the ETag. A lease's
	// heartbeat is written to the metadata and changes the ETag every 10 s, so a large leased file could not be read
	// otherwise. A writer that restores the previous last write time is not noticed. Defaults to false.
	IgnoreMetadata bool

	// Wait makes Download wait for SMB clients that do not let others read. Nil means not to wait. Defaults to nil.
	Wait *WaitOptions

	// Hooks observe the operation. Defaults to none.
	Hooks observe.Hooks

	ranges ranges

	_ struct{}
}

// DownloadResult describes what Download has read.
type DownloadResult struct {
	Size     int64
	ETag     azcore.ETag
	Written  time.Time // last write time, by the service's clock or as set by an SMB client
	Leased   bool      // a lease was held: its holder may not have finished writing
	Restarts int
	Requests int
}

// Download reads a file in ranges of 4 MiB, a few at a time, and writes them to to in their order. All ranges are of one
// version; if the file changes, Download restarts, or fails with ErrConflict. Memory: 20 MiB.
//
// A single version need not be a complete one: writers write in ranges too, and a read between two of them returns a
// mixture of old and new content. Leased reports that a writer may be active; only the caller's own lease excludes one.
// Data that an SMB client writes is visible only after the client has flushed it.
//
// Errors: ErrNotFound; ErrConflict; *InUseError if Wait is nil or has passed; *LostError if LeaseID is no longer valid;
// *azerr.OpError; errors from to and Restart. Data written before an error stays written. Requests: 1 per 4 MiB, 2 for an
// empty file; retried after transient faults. After an error, the result counts ranges that were requested ahead, too.
func Download(ctx context.Context, client *file.Client, to io.Writer, opts *DownloadOptions) (DownloadResult, error) {
	o := ptr.Value(opts)
	c, err := fileCall("download", client, o.Hooks, o.Wait, o.ranges)
	if err != nil {
		return DownloadResult{}, err
	}
	ctx, end := c.start(ctx, "Download")
	defer func() { end(err) }()
	r := &reader{client: client, call: c, lease: o.LeaseID, loose: o.IgnoreMetadata}
	out, err := r.all(ctx, cmp.Or(o.Restarts, 3), o.Restart, func(part []byte) error {
		_, err := to.Write(part)
		return err
	})
	out.Requests = c.requests()
	return out, err
}

// reader reads a file in ranges.
type reader struct {
	client *file.Client
	call   *call
	lease  string
	loose  bool // see IgnoreMetadata
	first  look // as reported with the first range
	leased bool // as reported with any range
}

// look is the state of a file in a response.
type look struct {
	size    int64
	etag    azcore.ETag
	written time.Time
	leased  bool
	headers file.HTTPHeaders // without the content hash, which a write invalidates
}

var errChanged = fmt.Errorf("%w during the read", pessimistic.ErrConflict)

// all reads the whole file. restart discards the output so far when the file has changed.
func (r *reader) all(ctx context.Context, restarts int, restart func() error, each func([]byte) error) (DownloadResult, error) {
	var out DownloadResult
	for {
		begun, err := r.once(ctx, each)
		switch {
		case err == nil:
			out.Size, out.ETag, out.Written, out.Leased = r.first.size, r.first.etag, r.first.written, r.leased && r.lease == ""
			return out, nil
		case !errors.Is(err, errChanged):
			return out, err
		case out.Restarts >= restarts || begun && restart == nil:
			return out, r.call.refusal(ctx, "read", false, err)
		}
		if begun {
			if err := restart(); err != nil {
				return out, err
			}
		}
		out.Restarts++
	}
}

// part reads the range that begins at an offset, or as many bytes as there are.
func (r *reader) part(ctx context.Context, p *piece) error {
	resp, err := r.client.DownloadStream(ctx, &file.DownloadStreamOptions{
		Range: file.HTTPRange{Offset: p.at, Count: r.call.span}, LeaseAccessConditions: leasedBy(r.lease)})
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if p.seen, err = lookOf(resp); err != nil {
		return err
	}
	p.part = make([]byte, max(0, min(r.call.span, p.seen.size-p.at)))
	_, err = io.ReadFull(resp.Body, p.part)
	return err
}

// empty verifies that the file has no content: no range of it can be read.
func (r *reader) empty(ctx context.Context) error {
	seen, err := see(ctx, r.client, r.call, r.lease)
	if err == nil && seen.size > 0 {
		return errChanged
	}
	r.first, r.leased = seen, r.leased || seen.leased
	return err
}

func (r *reader) same(seen look) bool {
	switch was := r.first; {
	case seen.size != was.size:
		return false
	case r.lease != "":
		return true
	case r.loose:
		return seen.written.Equal(was.written)
	default:
		return seen.etag == was.etag
	}
}

func lookOf(resp file.DownloadStreamResponse) (look, error) {
	_, total, _ := strings.Cut(ptr.Value(resp.ContentRange), "/")
	size, err := strconv.ParseInt(total, 10, 64)
	if err != nil {
		return look{}, fmt.Errorf("the response has no size: Content-Range %q", ptr.Value(resp.ContentRange))
	}
	return look{
		size: size, etag: ptr.Value(resp.ETag), written: ptr.Value(resp.FileLastWriteTime), leased: string(ptr.Value(resp.LeaseState)) == string(lease.Leased),
		headers: file.HTTPHeaders{CacheControl: resp.CacheControl, ContentDisposition: resp.ContentDisposition,
			ContentEncoding: resp.ContentEncoding, ContentLanguage: resp.ContentLanguage, ContentType: resp.ContentType},
	}, nil
}

func see(ctx context.Context, client *file.Client, c *call, id string) (seen look, err error) {
	_, err = c.send(ctx, "Get File Properties", func(ctx context.Context) error {
		resp, err := client.GetProperties(ctx, &file.GetPropertiesOptions{LeaseAccessConditions: leasedBy(id)})
		if err == nil && resp.ContentLength == nil {
			return errors.New("the response has no Content-Length")
		}
		seen = look{
			size: ptr.Value(resp.ContentLength), etag: ptr.Value(resp.ETag), written: ptr.Value(resp.FileLastWriteTime), leased: string(ptr.Value(resp.LeaseState)) == string(lease.Leased),
			headers: file.HTTPHeaders{CacheControl: resp.CacheControl, ContentDisposition: resp.ContentDisposition,
				ContentEncoding: resp.ContentEncoding, ContentLanguage: resp.ContentLanguage, ContentType: resp.ContentType},
		}
		return err
	})
	return seen, err
}
