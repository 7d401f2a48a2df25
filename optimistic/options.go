package optimistic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/retry"
)

// DefaultLineageSize is how many recent writes a lineage holds unless LineageSize says otherwise: with the summary of
// older ones up to 1.8 KB of the 8 KB that the service allows for metadata.
const DefaultLineageSize = 32

const maxLineageSize = 128

// UpdateOptions tunes Update. The zero value is the default.
type UpdateOptions struct {
	// Conditions hold beyond the version that was read. IfMatch pins the base: the resource must be at this version,
	// and a conflict is final. IfTags and LeaseID travel with the write. The other fields are refused: the loop sets
	// them itself.
	Conditions Conditions

	// OperationID makes the change idempotent across processes: a resource that remembers the operation is left alone,
	// with AlreadyApplied set, before any condition is looked at. Of calls at the same time, one applies it.
	//
	// The window: a resource remembers the last OperationsKept (256) operations that are no older than OperationAge (7
	// days, by the writers' clocks); index tags remember 7 and a page range 12, of any age. What must never be repeated
	// belongs to package idempotent's Once. A writer outside azconc that replaces all metadata, and an unconditional
	// Upload, make the resource forget. The same id on a blob's content, its metadata and its tags is three operations.
	//
	// A change that leaves the value as it is is written nevertheless, so that it is remembered; ErrSkip leaves no trace.
	// A write is refused if the metadata, or the entity, leaves no room for all operations in the window: up to 3.4 KB of
	// the 8 KB. Targets without a place for it (headers, sequence numbers, access policies) refuse it. Defaults to none.
	OperationID string

	// Create lets the change start from T's zero value when the resource does not exist. Defaults to false: ErrNotFound.
	Create bool

	// DryRun runs the change and reports what would happen, and sends no write. Defaults to false.
	DryRun bool

	// Attempts bounds how often the change is run; negative means no bound. Defaults to 12.
	Attempts int

	// Elapsed bounds the time spent on conflicts, from the call to the last attempt; negative means no bound. Defaults
	// to 30 s.
	Elapsed time.Duration

	// Backoff spaces the attempts after a conflict. Defaults to full jitter of 20 ms, doubling, at most 2 s.
	Backoff retry.Backoff

	// EscalateAfter makes an update lease the blob for a moment, once, when it has met so many conflicts, so that nobody
	// is faster the next time. All who write the blob must set it: a writer that does not is refused meanwhile
	// (412 LeaseIdMissing), where one that does waits. Defaults to 0: never, because contenders that take turns by the
	// lineage need fewer requests (measured on 32 writers: 4.7 per commit, against 5.1 with leases after 4 conflicts).
	EscalateAfter int

	Sending

	_ struct{}
}

// Sending tunes how a single read or write is carried through transient faults. It is the same for every operation of
// this package. The zero value is the default.
type Sending struct {
	// LineageSize is how many writes the lineage remembers, at most 128; negative writes no lineage, for readers that
	// cannot bear a foreign metadata key. Without a lineage every conflict after a lost answer is ErrOutcomeUnknown.
	// Defaults to DefaultLineageSize.
	LineageSize int

	// Tries bounds how often one request is sent again after a transient fault; negative means no bound. Defaults to 6.
	Tries int

	// TryTimeout ends a single request that gets no response; negative means no bound. Defaults to 30 s, the service's
	// own limit for most operations. The time for the content of blobs is added, see MinRate.
	TryTimeout time.Duration

	// MinRate is the slowest transfer to wait for, in bytes per second: a try may last TryTimeout, and longer by the time
	// that the content it sends or receives takes at this rate. Negative adds nothing. Defaults to DefaultMinRate, 64 KiB/s:
	// a try of 36 MB may last 10 minutes.
	MinRate int64

	// Recreate sends a create again if its response was lost and the resource is not there. That is right for a resource
	// that no other client deletes. Otherwise it may be created twice: the first create was applied, and another client has
	// consumed the resource. Defaults to false: azconc looks for the resource until Tries are spent, and then the error is
	// ErrOutcomeUnknown.
	Recreate bool

	// Pause spaces those tries; the service's Retry-After is honoured on top. Defaults to full jitter of 200 ms,
	// doubling, at most 10 s.
	Pause retry.Backoff

	// Grace bounds the last look at the resource when ctx ends while the outcome of a write is open. Defaults to 2 s.
	Grace time.Duration

	// TrustConflicts takes a refusal without any sign of trouble for final. Set it where nothing between here and the
	// service repeats requests, and writers outside azconc, which keep no lineage, are common: after one of them a
	// conflict cannot be confirmed, and would be ErrOutcomeUnknown. Defaults to false.
	TrustConflicts bool

	// Logger gets one record per conflict and per ambiguous answer, at debug level: both are normal. Defaults to none.
	Logger *slog.Logger
}

func (o *UpdateOptions) withDefaults() (UpdateOptions, error) {
	var out UpdateOptions
	if o != nil {
		out = *o
	}
	out.Attempts = cmp.Or(out.Attempts, 12)
	out.Elapsed = cmp.Or(out.Elapsed, 30*time.Second)
	out.Backoff = orBackoff(out.Backoff, 20*time.Millisecond, 2*time.Second)
	if out.OperationID != "" && out.LineageSize < 0 {
		return out, errors.New("UpdateOptions.OperationID: it is remembered in the lineage, which a negative LineageSize turns off")
	}
	if out.EscalateAfter < 0 {
		return out, fmt.Errorf("UpdateOptions.EscalateAfter: %d is negative; 0 means never", out.EscalateAfter)
	}
	c := out.Conditions
	if c.IfNoneMatch != "" || !c.IfModifiedSince.IsZero() || !c.IfUnmodifiedSince.IsZero() {
		return out, errors.New("UpdateOptions.Conditions: an update sets If-Match by itself; only IfMatch, IfTags and LeaseID can be given")
	}
	if c.IfMatch == azcore.ETagAny {
		out.Conditions.IfMatch = "" // "must exist" is what an update without Create demands anyway
		if out.Create {
			return out, errors.New(`UpdateOptions: IfMatch "*" asks for an existing resource, Create for a missing one; give one of them`)
		}
	}
	if err := c.validate(); err != nil {
		return out, err
	}
	var err error
	out.Sending, err = out.Sending.withDefaults()
	return out, err
}

func (s Sending) withDefaults() (Sending, error) {
	s.LineageSize = cmp.Or(s.LineageSize, DefaultLineageSize)
	s.Tries = cmp.Or(s.Tries, 6)
	s.TryTimeout = cmp.Or(s.TryTimeout, 30*time.Second)
	s.MinRate = cmp.Or(s.MinRate, DefaultMinRate)
	s.Grace = cmp.Or(s.Grace, 2*time.Second)
	s.Pause = orBackoff(s.Pause, 200*time.Millisecond, 10*time.Second)
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if s.LineageSize > maxLineageSize {
		return s, fmt.Errorf("LineageSize: %d is more than %d, which would not fit the 8 KB of metadata", s.LineageSize, maxLineageSize)
	}
	if s.Grace < 0 {
		return s, fmt.Errorf("Grace: %v is negative; give the time a last look may take", s.Grace)
	}
	return s, nil
}

func orBackoff(b retry.Backoff, base, limit time.Duration) retry.Backoff {
	b.Base = cmp.Or(b.Base, base)
	b.Cap = max(cmp.Or(b.Cap, limit), b.Base)
	return b
}

// Result tells what an operation did and what it took. Nothing is hidden: the counts are exact.
//
// ETag is empty after a write that the lineage proved applied (Resolved > 0, Changed): that shows the write, not which of
// the versions since is the write's own, and a later one may hold another writer's change.
type Result struct {
	Changed        bool        // a write was applied
	Created        bool        // the write created the resource
	AlreadyApplied bool        // the OperationID had been applied before, or by another call at the same time
	ETag           azcore.ETag // the version of our write, or of what was read when nothing was written; empty when not known
	BaseETag       azcore.ETag // the version our write replaced; empty when it created the resource
	WriteID        string      // the id in the lineage; empty when nothing was written

	Attempts  int // how often the change was run
	Conflicts int // how often another writer was faster
	Ambiguous int // answers that left open whether the write had been applied
	Resolved  int // ambiguous writes whose outcome the lineage proved
	Requests  int // requests sent
	Folded    int // changes that shared the write; 0 outside a Document
	Elapsed   time.Duration
}

// Conditions restrict an operation beyond what it does by itself. The zero value is no condition.
//
// The service takes at most two of the headers on a write, and only these pairs: If-Match with If-Unmodified-Since,
// If-None-Match with If-Modified-Since (REST: "Specifying conditional headers for Blob service operations"; anything
// else is 400 MultipleConditionHeadersNotSupported). Illegal pairs are refused before anything is sent.
type Conditions struct {
	IfMatch           azcore.ETag // the resource must be at this version; "*": must exist
	IfNoneMatch       azcore.ETag // the resource must not be at this version; "*": must not exist
	IfModifiedSince   time.Time   // whole seconds, of the service's clock: too coarse for compare-and-swap
	IfUnmodifiedSince time.Time
	IfTags            string // a predicate over the blob's index tags, such as "state" = 'ready'
	LeaseID           string // the lease the caller holds
}

func (c Conditions) validate() error {
	type given struct {
		name string
		set  bool
	}
	all := []given{
		{"If-Match", c.IfMatch != ""},
		{"If-None-Match", c.IfNoneMatch != ""},
		{"If-Modified-Since", !c.IfModifiedSince.IsZero()},
		{"If-Unmodified-Since", !c.IfUnmodifiedSince.IsZero()},
	}
	var names []string
	for _, g := range all {
		if g.set {
			names = append(names, g.name)
		}
	}
	legal := len(names) < 2 ||
		len(names) == 2 && all[0].set && all[3].set ||
		len(names) == 2 && all[1].set && all[2].set
	if !legal {
		return fmt.Errorf("conditions: %s cannot be combined; the service takes one of them, or If-Match with If-Unmodified-Since, or If-None-Match with If-Modified-Since",
			strings.Join(names, " and "))
	}
	for _, e := range []given{{string(c.IfMatch), c.IfMatch != ""}, {string(c.IfNoneMatch), c.IfNoneMatch != ""}} {
		if e.set && !validETag(e.name) {
			return fmt.Errorf(`conditions: %q is not an ETag; give it as the service wrote it, in double quotes ("0x8D…"), or *`, e.name)
		}
	}
	return nil
}

// validETag accepts "*" and a quoted ETag, weak or strong. A bare one is refused here, because the service would treat
// some malformed values as no condition at all; the command line adds the quotes that a shell swallows.
func validETag(s string) bool {
	if s == "*" {
		return true
	}
	s = strings.TrimPrefix(s, "W/")
	return len(s) > 2 && s[0] == '"' && s[len(s)-1] == '"' && !strings.ContainsAny(s[1:len(s)-1], "\"\r\n")
}

// withAttempt tells the change function which run it is in.
func withAttempt(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, attemptKey{}, n)
}
