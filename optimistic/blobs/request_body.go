package blobs

import (
	"errors"
	"io"
	"sync"
)

// requestBody is content that a request sends from the memory of its owner, without a copy. net/http may read from a body
// after it has returned the request's error, and the owner may then change the memory. So the body ends with the request:
// after End, nothing more is read, and a request that is still under way is cut off.
type requestBody struct {
	mu    sync.Mutex // guards what follows; held while bytes are copied, never while waiting
	r     io.ReadSeeker
	ended bool
	file  io.Closer // nil for memory
}

func newRequestBody(r io.ReadSeeker) *requestBody { return &requestBody{r: r} }

var errBodyEnded = errors.New("the request has ended, and its body with it")

// End waits for a read in progress, and lets every later one fail.
func (b *requestBody) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	if b.file != nil {
		_ = b.file.Close()
	}
}

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return 0, errBodyEnded
	}
	return b.r.Read(p)
}

// Seek implements io.Seeker.
func (b *requestBody) Seek(offset int64, whence int) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.r.Seek(offset, whence)
}

// Close implements io.Closer. The SDK closes a body before it sends it again, so that has no effect.
func (*requestBody) Close() error { return nil }

var _ io.ReadSeekCloser = (*requestBody)(nil)
