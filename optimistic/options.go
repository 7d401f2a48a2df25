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

// DefaultLineageSize is how many recent writes a lineage holds unless LineageSize says otherwise. With the summary of
// older writes a lineage takes up to 1.8 KB of the 8 KB that the service allows for metadata.
const DefaultLineageSize = 32

const maxLineageSize = 128

// UpdateOptions tunes Update. The zero value is the default.
type UpdateOptions struct {
	// Conditions are checked in addition to the version that was read. With IfMatch the resource must be at that
	// version, and a conflict is final. IfTags and LeaseID are sent with the write. The other fields are refused,
	// because Update sets them itself.
	Conditions Conditions

	// OperationID makes the change idempotent across processes. If the resource remembers the operation, the change is
	// not run and AlreadyApplied is set; this is checked before any condition. Of several concurrent calls one applies
	// the operation.
	//
	// A resource remembers the last OperationsKept (256) operations that are no older than OperationAge (7 days, by the
	// writers' clocks). Index tags remember 7 and a page range 12, of any age. A change that must never be repeated
	// needs Once of package idempotent. The resource forgets its operations if a writer outside azconc replaces all
	// metadata, or if an unconditional Upload replaces the blob. The same id on a blob's content, metadata and tags is
	// three operations.
	//
	// A change that leaves the value as it is is written nevertheless, so that it is remembered; ErrSkip writes
	// nothing. A write is refused if the metadata, or the entity, has no room for all operations in the window, which
	// take up to 3.4 KB of the 8 KB. Targets that cannot store operations (headers, sequence numbers, access policies)
	// refuse an OperationID. Defaults to none.
	OperationID string

	// Create runs the change on T's zero value if the resource does not exist. Defaults to false: ErrNotFound.
	Create bool

	// DryRun runs the change and reports what would happen, without sending the write. Defaults to false.
	DryRun bool

	// Attempts bounds how often the change is run; negative means no bound. Defaults to 12.
	Attempts int

	// Elapsed bounds the time spent on conflicts, from the call to the last attempt; negative means no bound. Defaults
	// to 30 s.
	Elapsed time.Duration

	// Backoff spaces the attempts after a conflict. Defaults to full jitter of 20 ms, doubling, at most 2 s.
	Backoff retry.Backoff

	// EscalateAfter makes an update lease the blob once, for a moment, after that many conflicts, so that no other
	// writer can be faster. All writers of the blob must set it: one that does not is refused during the lease (412
	// LeaseIdMissing), where one that does waits. Defaults to 0, never: contenders that wait as the lineage suggests
	// need fewer requests (measured with 32 writers: 4.7 per commit, against 5.1 with leases after 4 conflicts).
	EscalateAfter int

	Sending

	_ struct{}
}

// Sending tunes how transient faults of a single read or write are handled. It is the same for every operation of this
// package. The zero value is the default.
type Sending struct {
	// LineageSize is how many writes the lineage remembers, at most 128. If it is negative, no lineage is written, for
	// readers that cannot tolerate an unexpected metadata key; then every conflict after a lost response is
	// ErrOutcomeUnknown. Defaults to DefaultLineageSize.
	LineageSize int

	// Tries bounds how often one request is sent, the first time included; negative means no bound. Defaults to 6.
	Tries int

	// TryTimeout ends a request that gets no response; negative means no bound. Defaults to 30 s, the service's own
	// limit for most operations. The time that blob content takes is added, see MinRate.
	TryTimeout time.Duration

	// MinRate is the slowest transfer to wait for, in bytes per second: a request may take TryTimeout plus the time
	// that the content it sends or receives takes at this rate. Negative adds nothing. Defaults to DefaultMinRate, 64
	// KiB/s: a request with 36 MB of content may take 10 minutes.
	MinRate int64

	// Recreate sends a create again if its response was lost and the resource is not there. Set it only if no other
	// client deletes the resource. Otherwise the resource may be created twice: the first create was applied, and
	// another client has consumed the resource. Defaults to false: azconc looks for the resource until Tries are spent,
	// and then the error is ErrOutcomeUnknown.
	Recreate bool

	// Pause is the wait between tries. The service's Retry-After is a lower bound. Defaults to full jitter of 200 ms,
	// doubling, at most 10 s.
	Pause retry.Backoff

	// Grace bounds the last look at the resource if ctx ends while the outcome of a write is open. Defaults to 2 s.
	Grace time.Duration

	// TrustConflicts takes a conflict as it is, if no response was lost. By default a conflict is confirmed by a look
	// at the resource, because an intermediary may deliver a request twice and pass on the refusal of the second
	// delivery. A look confirms nothing if a writer outside azconc has replaced the lineage, or if the resource was
	// deleted: then the error is ErrOutcomeUnknown. Set TrustConflicts if such writers are common and nothing between
	// the client and the service repeats requests. Defaults to false.
	TrustConflicts bool

	// Logger gets one record at debug level per conflict and per ambiguous response; both are normal. Defaults to none.
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

// Result is what an operation did and what it took. The counts are exact.
//
// ETag is empty if the response to the write was lost and the lineage proved it applied (Changed and Resolved > 0). The
// lineage proves the write, but not which of the versions since is the write's own: a later one may have another
// writer's change.
type Result struct {
	Changed        bool        // a write was applied
	Created        bool        // the write created the resource
	AlreadyApplied bool        // the OperationID had been applied before, or by another call at the same time
	ETag           azcore.ETag // the version that was written, or read if nothing was written; empty if not known
	BaseETag       azcore.ETag // the version that was replaced; empty if the write created the resource
	WriteID        string      // the id in the lineage; empty if nothing was written

	Attempts  int // how often the change was run
	Conflicts int // how often another writer was faster
	Ambiguous int // tries that left open whether the write was applied
	Resolved  int // ambiguous writes whose outcome was proved
	Requests  int // requests sent
	Folded    int // changes that shared the write; 0 outside a Document
	Elapsed   time.Duration
}

// Conditions restrict an operation in addition to the conditions that it sets itself. The zero value is no condition.
//
// The service takes at most two of the headers on a write, and only these pairs: If-Match with If-Unmodified-Since, and
// If-None-Match with If-Modified-Since (REST: "Specifying conditional headers for Blob service operations"; other pairs
// are 400 MultipleConditionHeadersNotSupported). Other pairs are refused before anything is sent.
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

// validETag accepts "*" and a quoted ETag, weak or strong. An unquoted one is refused, because the service would treat
// some malformed values as no condition at all. The command line adds the quotes that a shell removes.
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
