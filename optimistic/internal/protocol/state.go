package protocol

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/retry"
)

// State is the version of a resource without its value, as a read or a look found it.
type State struct {
	Exists       bool
	ETag         azcore.ETag // empty if the resource does not exist
	LastModified time.Time   // by the service's clock; zero if not known
	Created      time.Time   // when the resource was created, by the service's clock; zero if not known
	Lineage      Lineage
	Copied       bool // the service has copied it from another resource, with that one's lineage

	decided *decision // see Decide
	date    time.Time // of the response, see Dated
	aged    bool      // a cache gave the response, which may show a resource that has been deleted since
}

// Result has the fields of optimistic.Result, so that one converts to the other.
type Result struct {
	Changed        bool
	Created        bool
	AlreadyApplied bool
	ETag           azcore.ETag
	BaseETag       azcore.ETag
	WriteID        string

	Attempts  int
	Conflicts int
	Foreign   int
	Ambiguous int
	Resolved  int
	Requests  int
	Folded    int
	Elapsed   time.Duration
}

// run is what a change can ask about its run.
type run struct {
	earlier int
	base    State
}

type runKey struct{}

// WithRun returns a context in which EarlierRuns returns n, and BaseOf base. A call passes it to the change function.
func WithRun(ctx context.Context, n int, base State) context.Context {
	return context.WithValue(ctx, runKey{}, run{n, base})
}

// EarlierRuns returns, inside a change function, how many times the change has run before.
func EarlierRuns(ctx context.Context) int {
	r, _ := ctx.Value(runKey{}).(run)
	return r.earlier
}

// BaseOf returns, inside a change function, the version that the change runs on.
func BaseOf(ctx context.Context) State {
	r, _ := ctx.Value(runKey{}).(run)
	return r.base
}

// current returns a context in which a look asks caches between the client and the service for the current version. An
// older version would be taken for one that was written since. It replaces the headers that the caller's context adds.
func current(ctx context.Context) context.Context {
	return policy.WithHTTPHeader(ctx, currentHeader)
}

// AsStored is current for a read of content. It also asks for the stored bytes: a transport that asks for gzip decompresses
// the response, and hides both the stored bytes and their Content-Encoding, so that a write would store the decompressed
// content.
func AsStored(ctx context.Context) context.Context {
	return policy.WithHTTPHeader(ctx, asStoredHeader)
}

// The SDK copies these, and never writes to them.
var (
	currentHeader  = http.Header{"Cache-Control": {"no-cache"}}
	asStoredHeader = http.Header{"Cache-Control": {"no-cache"}, "Accept-Encoding": {"identity"}}
)

// Sent returns the value of a header that the service sends with every success. err is the error of the request. A
// success without the header is not the service's: an intermediary has dropped a part of it. So its error counts as that
// of a response that was cut off: a read is repeated, and a write may have been applied. Without an ETag in particular,
// the next write would have no condition.
func Sent[T any](header string, value *T, err error) (T, error) {
	var none T
	switch {
	case err != nil:
		return none, err
	case value == nil:
		return none, lacking(header)
	}
	return *value, nil
}

// lacking is the error of a success without a header.
type lacking string

func (header lacking) Error() string {
	return "the response has no " + string(header) + ", which the service always sends: a proxy may have dropped it"
}

func (lacking) Unwrap() error { return io.ErrUnexpectedEOF }

const (
	LineageSize    = 32       // entries that a lineage has in full
	DefaultMinRate = 64 << 10 // bytes per second
)

// Settings are the fields of optimistic.SendOptions, which describes them.
type Settings struct {
	NoLineage  bool
	Tries      int
	TryTimeout time.Duration
	MinRate    int64
	Recreate   bool
	Pause      retry.Backoff
	Grace      time.Duration
	Confirm    Confirm
	Hooks      observe.Hooks
}

// Confirm is optimistic.Confirm.
type Confirm uint8

// The values of Confirm.
const (
	ConfirmByPath Confirm = iota
	ConfirmAlways
	ConfirmNever
)

// WithDefaults returns s with its defaults filled in, or an error that names the field that is out of range.
func (s Settings) WithDefaults() (Settings, error) {
	s.Tries = cmp.Or(s.Tries, 6)
	s.TryTimeout = cmp.Or(s.TryTimeout, 30*time.Second)
	s.MinRate = cmp.Or(s.MinRate, DefaultMinRate)
	s.Grace = cmp.Or(s.Grace, 2*time.Second)
	s.Pause = OrBackoff(s.Pause, 200*time.Millisecond, 10*time.Second)
	if s.Confirm > ConfirmNever {
		return s, fmt.Errorf("ConfirmConflicts: %d is none of ConfirmByPath, ConfirmAlways and ConfirmNever", s.Confirm)
	}
	if s.Grace < 0 {
		return s, fmt.Errorf("Grace: %v is negative; give the time a last look may take", s.Grace)
	}
	return s, nil
}

// OrBackoff returns b with base and limit in place of a zero Base and Cap.
func OrBackoff(b retry.Backoff, base, limit time.Duration) retry.Backoff {
	b.Base = cmp.Or(b.Base, base)
	b.Cap = max(cmp.Or(b.Cap, limit), b.Base)
	return b
}
