package anyblob

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

// lent is a body in memory that is its owner's again once the body is closed.
type lent struct {
	mu     sync.Mutex // guards what follows: net/http reads in a goroutine of its own
	data   *bytes.Reader
	closed bool
}

// Lend returns a request's body that reads data until the SDK closes it, which it does before it returns: net/http may read
// from a body after it has returned the request's error, and would send what the owner has put there since.
func Lend(data []byte) io.ReadSeekCloser { return &lent{data: bytes.NewReader(data)} }

func (l *lent) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, os.ErrClosed
	}
	return l.data.Read(p)
}

func (l *lent) Seek(offset int64, whence int) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.data.Seek(offset, whence)
}

func (l *lent) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return nil
}

// Get sends Get Blob for a range, or for all of the blob, and asks for the bytes as they are stored. Without an error the response
// has an ETag, a body to be closed, and the bytes that were asked for, if it says which it has. The body is nil if c asks for a
// newer version and there is none.
func Get(ctx context.Context, client *blob.Client, r blob.HTTPRange, c optimistic.Conditions) (blob.DownloadStreamResponse, error) {
	opts := blob.DownloadStreamOptions{Range: r, AccessConditions: AccessConditions(c)}
	var raw *http.Response
	resp, err := wire.Request(protocol.AsStored(ctx), "Get Blob", func(ctx context.Context) (blob.DownloadStreamResponse, error) {
		if c.IfNoneMatch == "" && c.IfModifiedSince.IsZero() {
			return client.DownloadStream(ctx, &opts)
		}
		resp, err := client.DownloadStream(policy.WithCaptureResponse(ctx, &raw), &opts)
		return resp, wire.Genuine(raw, err)
	})
	if err == nil && raw != nil && raw.StatusCode == http.StatusNotModified { // which is no error to the SDK
		if resp.Body != nil { // azblob has left it out since 1.8.1
			_ = resp.Body.Close()
		}
		resp.Body = nil
		return resp, nil
	}
	if _, err = protocol.Sent("ETag", resp.ETag, err); err == nil && resp.ContentRange != nil {
		err = answers(r, *resp.ContentRange)
	}
	if err != nil && resp.Body != nil { // also with the response of an intermediary
		_ = resp.Body.Close()
	}
	return resp, err
}

// answers returns an error if a Content-Range is not the one that was asked for. It wraps io.ErrUnexpectedEOF, so that the read is
// repeated.
func answers(asked blob.HTTPRange, header string) error {
	first, last, total, ok := ContentRange(&header)
	end := total
	if asked.Count > 0 {
		end = min(total, asked.Offset+asked.Count)
	}
	if ok && first == asked.Offset && last == end-1 {
		return nil
	}
	return fmt.Errorf("the response has the Content-Range %q to a request for %d bytes (0: all) from %d on: %w",
		header, asked.Count, asked.Offset, io.ErrUnexpectedEOF)
}

// errCut reports a body that ends early. It wraps io.ErrUnexpectedEOF, so that the read is repeated.
func errCut(got, want int64) error {
	return fmt.Errorf("the body ends after %d of %d bytes: %w", got, want, io.ErrUnexpectedEOF)
}

// TooLong reports content of more than limit bytes.
type TooLong struct{ limit int64 }

func (e TooLong) Error() string { return fmt.Sprintf("content has more than %d bytes", e.limit) }

// ReadBody reads the body of a Get Blob response to its end, at most limit bytes. See CopyBody.
func ReadBody(ctx context.Context, client *blob.Client, resp blob.DownloadStreamResponse, limit int64) ([]byte, error) {
	size := int64(0)
	if want, known := Announced(resp); known && want <= limit {
		size = want
	}
	data := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead)) // the whole body, and what a Buffer wants to be free
	_, err := CopyBody(ctx, client, resp, limit, data)
	return data.Bytes(), err
}

// CopyBody copies the body of a Get Blob response, at most limit bytes, and checks its length against Content-Range and
// Content-Length. If an intermediary has dropped both, copyUnmeasured checks it. It returns how many bytes it has written, also with an error. It does not close the body.
func CopyBody(ctx context.Context, client *blob.Client, resp blob.DownloadStreamResponse, limit int64, to io.Writer) (int64, error) {
	body := protocol.Timed(ctx, resp.Body)
	want, known, err := announced(resp)
	switch {
	case err != nil:
		return 0, err
	case !known:
		return copyUnmeasured(ctx, client, resp, limit, body, to)
	case want > limit:
		return 0, TooLong{limit}
	}
	n, err := io.Copy(to, io.LimitReader(body, want))
	switch {
	case err == nil && n < want, errors.Is(err, io.ErrUnexpectedEOF):
		return n, errCut(n, want)
	case err != nil:
		return n, fmt.Errorf("read the body: %w", err)
	}
	return n, nil
}

// Announced returns the length that a response announces for its body, if it does.
func Announced(resp blob.DownloadStreamResponse) (want int64, known bool) {
	want, known, err := announced(resp)
	return want, known && err == nil
}

func announced(resp blob.DownloadStreamResponse) (want int64, known bool, err error) {
	want = ptr.Value(resp.ContentLength)
	first, last, _, ranged := ContentRange(resp.ContentRange)
	switch {
	case ranged && resp.ContentLength != nil && want != last-first+1:
		return 0, false, fmt.Errorf("the response announces %d bytes and contains those of %s: %w", want, *resp.ContentRange, io.ErrUnexpectedEOF)
	case ranged:
		return last - first + 1, true, nil
	}
	return want, resp.ContentLength != nil, nil
}

// copyUnmeasured copies a body that arrived without a length. An intermediary that marks its end by closing the connection
// passes on a truncated body without an error. The blob's Content-MD5, if it matches, proves that the body is complete.
// Otherwise the length is asked for, with 1 more request.
func copyUnmeasured(ctx context.Context, client *blob.Client, resp blob.DownloadStreamResponse, limit int64, body io.Reader, to io.Writer) (int64, error) {
	sum := md5.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(body, max(limit, limit+1)))
	switch {
	case err != nil:
		return n, fmt.Errorf("read the body: %w", err)
	case n > limit:
		return n, TooLong{limit}
	case bytes.Equal(sum.Sum(nil), resp.ContentMD5):
		return n, nil
	}
	want, err := Length(ctx, client, ptr.Value(resp.ETag))
	if err == nil && want != n {
		err = errCut(n, want)
	}
	return n, err
}

// Length asks for the length of the version etag of a blob in a way that survives intermediaries: it reads the
// Content-Range of the first byte. It costs 1 request. If the blob has changed to another version, the error wraps
// io.ErrUnexpectedEOF, so that the caller reads again.
func Length(ctx context.Context, client *blob.Client, etag azcore.ETag) (int64, error) {
	resp, err := Get(ctx, client, blob.HTTPRange{Count: 1}, optimistic.Conditions{IfMatch: etag})
	switch {
	case azerr.Has(err, "InvalidRange"):
		return 0, nil // it has no first byte (REST: "Get Blob")
	case azerr.Classify(err).Kind == azerr.Conflict, azerr.Has(err, "BlobNotFound"):
		return 0, fmt.Errorf("the blob was changed before its length could be checked: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return 0, err
	}
	_ = resp.Body.Close()
	_, _, total, ok := ContentRange(resp.ContentRange)
	if !ok {
		return 0, fmt.Errorf("the length of the blob is not known: the response has the Content-Range %q", ptr.Value(resp.ContentRange))
	}
	return total, nil
}

// LengthOf returns the Content-Length of a Get Blob Properties response, or Length if an intermediary has dropped
// it.
func LengthOf(ctx context.Context, client *blob.Client, props blob.GetPropertiesResponse) (int64, error) {
	if props.ContentLength != nil {
		return *props.ContentLength, nil
	}
	return Length(ctx, client, ptr.Value(props.ETag))
}

// ContentRange parses a Content-Range header.
func ContentRange(header *string) (first, last, total int64, ok bool) {
	n, err := fmt.Sscanf(ptr.Value(header), "bytes %d-%d/%d", &first, &last, &total)
	return first, last, total, n == 3 && err == nil && 0 <= first && first <= last && last < total
}
