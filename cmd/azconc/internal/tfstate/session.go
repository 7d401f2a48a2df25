package tfstate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

// Options configures a Session. All of them are needed.
type Options struct {
	// Name is the state's name for people.
	Name string

	// Duration is that of the lease: 15 s to 60 s in whole seconds. A lock whose run has died ends within that time.
	Duration time.Duration

	// Lost is called, from a goroutine of the Session, when a lock may end although the client has not unlocked: it could not be
	// renewed in time, or the service reports that it is over.
	Lost func(error)

	// Note is called with lines for the user, each without line breaks and control characters, whatever a holder calls itself:
	// clients show the status of a refusal, and not its text.
	Note func(format string, args ...any)
}

// patience is how long a write of the state is tried again while the service cannot be reached: the client waits for it, and would
// otherwise be left with a state that nothing has stored.
const patience = 5 * time.Minute

// Session serves one state to the clients of one run. It has at most one lock at a time. It is safe for concurrent use: requests
// are served one at a time.
type Session struct {
	container *container.Client
	name      string
	client    *blob.Client
	content   blobs.Blob[[]byte]
	opts      Options
	ctx       context.Context // of everything that outlives a request

	closing context.Context // ends when Close is called: from then on nothing is waited for
	close   context.CancelFunc
	turn    sync.Mutex

	// Guarded by turn.
	held     *held
	released string // the ID that was released last
	base     base
	kept     bool   // the version before has been kept under this lock
	noted    string // the ID of the last holder about which the user got a note
	lost     error  // why a lock was over before it was released
}

// held is a lock that the client has.
type held struct {
	info    Info
	lease   *pessimistic.Lease
	watched chan struct{} // closed when the goroutine that waits for the lease's end has ended
}

// base is the version that the client has read or written last.
type base struct {
	known   bool
	etag    azcore.ETag // empty: there was no blob
	content []byte
}

// New returns a Session for a blob, which need not exist. It sends no request. Close must be called. ctx bounds the Session and
// its locks.
func New(ctx context.Context, c *container.Client, name string, opts Options) *Session {
	note := opts.Note
	opts.Note = func(format string, args ...any) { note("%s", oneLine(fmt.Sprintf(format, args...))) }
	s := &Session{container: c, name: name, client: c.NewBlobClient(name), opts: opts, ctx: ctx}
	content := blobs.NewBytes(c.NewBlockBlobClient(name))
	s.content = blobs.Blob[[]byte]{Client: content.Client, Codec: stateCodec{}}
	s.closing, s.close = context.WithCancel(ctx)
	return s
}

// oneLine replaces control characters. Holders describe themselves: a name with a line break would print a message of its own, and one
// with escape sequences would reach the terminal where the log is read.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// stateCodec stores a state byte by byte, with the content type that the azurerm backend sets.
type stateCodec struct{ blobs.BytesCodec }

func (stateCodec) ContentType() string { return "application/json" }

// answer is the response to a request: a status, and a body if there is one.
type answer struct {
	status int
	body   []byte
}

var done = answer{status: http.StatusOK}

// refuse notes why a request is refused, and returns the answer.
func (s *Session) refuse(status int, format string, args ...any) answer {
	s.opts.Note("%s: "+format, append([]any{s.opts.Name}, args...)...)
	return answer{status: status, body: []byte(fmt.Sprintf(format, args...) + "\n")}
}

// fail answers a request that the service has refused or not answered. The client repeats it after a 503, which is why an
// unknown outcome is one: all requests may be repeated.
func (s *Session) fail(doing string, err error) answer {
	status := http.StatusConflict
	switch out := azerr.Classify(err); {
	case out.Kind == azerr.Unauthorised:
		status = http.StatusForbidden
	case out.Transient(), out.Ambiguous(), errors.Is(err, context.Canceled):
		status = http.StatusServiceUnavailable
	}
	return s.refuse(status, "%s: %s", doing, azerr.Summary(err))
}

// read answers a GET: the state, or 404 if there is none. An empty blob is what a lock on a new state leaves.
func (s *Session) read() answer {
	v, err := optimistic.Read(s.ctx, s.content, nil)
	switch {
	case errors.Is(err, optimistic.ErrNotFound) && azerr.Absent(err) == "":
		s.base = base{known: true}
		return answer{status: http.StatusNotFound}
	case err != nil:
		return s.fail("read the state", err)
	}
	s.base = base{known: true, etag: v.ETag, content: v.Value}
	if len(v.Value) == 0 {
		return answer{status: http.StatusNotFound}
	}
	return answer{status: http.StatusOK, body: v.Value}
}

// follow moves the client's version on when a request of ours has changed the ETag and not the content.
func (s *Session) follow(from, to azcore.ETag) {
	if s.base.known && s.base.etag == from && to != "" {
		s.base.etag = to
	}
}

// Close ends the session, and releases the lock if the client has died without UNLOCK. It must not be called while a process of
// the client may still be running: see Server.Abandon. It returns the ID of the lock that it has released, and why a lock was lost.
func (s *Session) Close() (id string, lost error) {
	s.close()
	s.turn.Lock()
	defer s.turn.Unlock()
	if h := s.held; h != nil && s.unlock(h).status == http.StatusOK {
		id = h.info.ID
	}
	return id, s.lost
}
