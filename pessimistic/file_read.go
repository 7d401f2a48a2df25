package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pkg/azerr"
)

// fileRange is how much is read and written at a time: as much as one request may write (REST: "Put Range").
const fileRange = 4 << 20

// DownloadFileOptions tunes DownloadFile. The zero value is the default.
type DownloadFileOptions struct {
	// LeaseID is the id of a lease that the caller holds on the file. As nobody else writes under it, versions are not
	// compared. Defaults to none.
	LeaseID string

	// Restart is called when the file has changed while it was read, to forget what was written so far: the content then
	// begins anew. Defaults to none: what was written cannot be taken back, so a change is an error.
	Restart func() error

	// Restarts bounds how often the reading begins anew; negative means never. Defaults to 3.
	Restarts int

	// IgnoreMetadata takes the last write time and the length for the version, instead of the ETag. Somebody's lease has
	// a heartbeat in the metadata, which changes the ETag every 10 s, so a large file could not be read meanwhile. A
	// writer who sets the last write time back to what it was is not noticed. Defaults to false.
	IgnoreMetadata bool

	// Wait waits for SMB clients that do not let others read. Nil is no waiting. Defaults to nil.
	Wait *WaitOptions

	// Hooks let the program watch. Defaults to silence.
	Hooks Hooks

	span int64 // see fileCall

	_ struct{}
}

// FileContent is what DownloadFile has read.
type FileContent struct {
	Size     int64
	ETag     azcore.ETag
	Written  time.Time // the last time, by the service's clock or as an SMB client has set it
	Leased   bool      // somebody held a lease: he may not have finished writing
	Restarts int
	Requests int
}

// DownloadFile reads a file, 4 MiB at a time and one range after the other, and writes it to to. All ranges are of one
// version, or it begins anew, or fails with ErrChanged. Memory: one range.
//
// One version is not a finished one: writers write in ranges too, and what is read between two of them is consistent in
// time only. Leased shows that one may be at work; only under a lease of one's own is nobody. And the service learns of
// what an SMB client writes when the client has flushed its cache.
//
// Errors: ErrNotFound; ErrChanged; *InUseError, when there is no waiting or its time is over; *LostError when LeaseID is
// not valid any more; *OpError; what to and Restart have returned. What was written until then stays. Requests: 1 for
// each 4 MiB, and 2 for an empty file; again after transient faults.
func DownloadFile(ctx context.Context, client *file.Client, to io.Writer, opts *DownloadFileOptions) (FileContent, error) {
	var o DownloadFileOptions
	if opts != nil {
		o = *opts
	}
	if client == nil {
		return FileContent{}, errors.New("download: no client")
	}
	c := newFileCall(client.URL(), o.Hooks).spans(o.span)
	if err := c.waits(client, o.Wait); err != nil {
		return FileContent{}, err
	}
	if o.Restarts == 0 {
		o.Restarts = 3
	}
	r := &fileReader{client: client, call: c, lease: o.LeaseID, loose: o.IgnoreMetadata}
	out, err := r.all(ctx, o.Restarts, o.Restart, func(part []byte) error {
		_, err := to.Write(part)
		return err
	})
	out.Requests = c.requests()
	return out, err
}

// fileReader reads a file range by range.
type fileReader struct {
	client *file.Client
	call   *fileCall
	lease  string
	loose  bool // see IgnoreMetadata
	buffer []byte
	first  fileLook // what the first range said
	leased bool     // what any range said
}

// fileLook is what an answer says about a file.
type fileLook struct {
	size    int64
	etag    azcore.ETag
	written time.Time
	leased  bool
	headers file.HTTPHeaders // but for the hash of the content, which a write makes wrong
}

var errFileChanged = fmt.Errorf("%w while it was read", ErrChanged)

// all reads the whole file. restart is for what was passed on when the file has changed.
func (r *fileReader) all(ctx context.Context, restarts int, restart func() error, each func([]byte) error) (FileContent, error) {
	var out FileContent
	for at := int64(0); ; {
		part, err := r.part(ctx, at)
		if errors.Is(err, errFileChanged) && out.Restarts < restarts && (at == 0 || restart != nil) {
			if at > 0 {
				if err := restart(); err != nil {
					return out, err
				}
			}
			at = 0
			out.Restarts++
			continue
		}
		if err != nil {
			return out, r.call.refusal(ctx, "read", false, err)
		}
		if len(part) > 0 {
			if err := each(part); err != nil {
				return out, err
			}
		}
		if at += int64(len(part)); at >= r.first.size {
			out.Size, out.ETag, out.Written, out.Leased = r.first.size, r.first.etag, r.first.written, r.leased && r.lease == ""
			return out, nil
		}
	}
}

// part reads one range. What it returns is valid until it is called again.
func (r *fileReader) part(ctx context.Context, at int64) ([]byte, error) {
	if r.buffer == nil {
		r.buffer = make([]byte, r.call.span)
	}
	var seen fileLook
	var part []byte
	_, err := r.call.send(ctx, "read", func(ctx context.Context) error {
		resp, err := r.client.DownloadStream(ctx, &file.DownloadStreamOptions{
			Range: file.HTTPRange{Offset: at, Count: r.call.span}, LeaseAccessConditions: leasedBy(r.lease)})
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if seen, err = lookOf(resp); err != nil {
			return err
		}
		part = r.buffer[:min(r.call.span, max(0, seen.size-at))]
		_, err = io.ReadFull(resp.Body, part)
		return err
	})
	r.leased = r.leased || seen.leased
	switch {
	case azerr.Has(err, "InvalidRange") && at > 0:
		return nil, errFileChanged // it is shorter now
	case azerr.Has(err, "InvalidRange"):
		return nil, r.empty(ctx)
	case err != nil:
		return nil, err
	case at == 0:
		r.first = seen
	case !r.same(seen):
		return nil, errFileChanged
	}
	return part, nil
}

// empty makes sure that the file has no content: no range can be read of it.
func (r *fileReader) empty(ctx context.Context) error {
	seen, err := seeFile(ctx, r.client, r.call, r.lease)
	if err == nil && seen.size > 0 {
		return errFileChanged
	}
	r.first, r.leased = seen, r.leased || seen.leased
	return err
}

func (r *fileReader) same(seen fileLook) bool {
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

func lookOf(resp file.DownloadStreamResponse) (fileLook, error) {
	_, total, _ := strings.Cut(deref(resp.ContentRange), "/")
	size, err := strconv.ParseInt(total, 10, 64)
	if err != nil {
		return fileLook{}, fmt.Errorf("the service does not tell the size: Content-Range %q", deref(resp.ContentRange))
	}
	return fileLook{
		size: size, etag: deref(resp.ETag), written: deref(resp.FileLastWriteTime), leased: string(deref(resp.LeaseState)) == string(StateLeased),
		headers: file.HTTPHeaders{CacheControl: resp.CacheControl, ContentDisposition: resp.ContentDisposition,
			ContentEncoding: resp.ContentEncoding, ContentLanguage: resp.ContentLanguage, ContentType: resp.ContentType},
	}, nil
}

// seeFile asks for a file's properties: one request.
func seeFile(ctx context.Context, client *file.Client, c *fileCall, lease string) (seen fileLook, err error) {
	_, err = c.send(ctx, "look at", func(ctx context.Context) error {
		resp, err := client.GetProperties(ctx, &file.GetPropertiesOptions{LeaseAccessConditions: leasedBy(lease)})
		seen = fileLook{
			size: deref(resp.ContentLength), etag: deref(resp.ETag), written: deref(resp.FileLastWriteTime), leased: string(deref(resp.LeaseState)) == string(StateLeased),
			headers: file.HTTPHeaders{CacheControl: resp.CacheControl, ContentDisposition: resp.ContentDisposition,
				ContentEncoding: resp.ContentEncoding, ContentLanguage: resp.ContentLanguage, ContentType: resp.ContentType},
		}
		return err
	})
	return seen, err
}
