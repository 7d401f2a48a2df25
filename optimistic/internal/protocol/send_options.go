package protocol

import (
	"cmp"
	"fmt"
	"time"

	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/retry"
)

// DefaultLineageSize is the number of recent writes that a lineage holds if SendOptions.LineageSize is 0. With the summary
// of older writes a lineage takes up to 1.3 KB of the 8 KB that the service allows for metadata, and up to 4 KB while
// writers contend.
const DefaultLineageSize = 32

const maxLineageSize = 128

// SendOptions tunes how transient faults of a single read or write are handled. All operations take it. The zero value is
// the default.
type SendOptions struct {
	// LineageSize is how many writes the lineage remembers, at most 128. If it is negative, no lineage is written, for
	// readers that cannot tolerate an unexpected metadata key; then a conflict after a lost response is always
	// ErrOutcomeUnknown. Defaults to DefaultLineageSize.
	LineageSize int

	// Tries bounds how many times one request is sent, the first time included; negative means no bound. Defaults to 6.
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

	// Pause is the wait between tries. The service's Retry-After, but no more than a minute of it, is a lower bound. Defaults
	// to full jitter of 200 ms, doubling, at most 10 s.
	Pause retry.Backoff

	// Grace bounds the last look at the resource if ctx ends while the outcome of a write is open. Defaults to 2 s.
	Grace time.Duration

	// ConfirmConflicts says which conflicts are believed that the lineage can neither confirm nor refute, because a
	// foreign writer has replaced it or the resource was deleted. Defaults to ConfirmByPath.
	ConfirmConflicts Confirm

	// Hooks observe the operation: a span for it and for each of its requests, and events for conflicts, lost responses and
	// their resolution, which are normal. Defaults to none.
	Hooks observe.Hooks
}

// Confirm says whether a conflict needs a proof. An intermediary that terminates the connection may deliver a write twice,
// and pass on the refusal of the second delivery although the first was applied. What the lineage proves decides in every
// case. Confirm decides about the conflicts for which it proves nothing.
type Confirm uint8

// The values of Confirm.
const (
	// ConfirmByPath believes a conflict if nothing between the client and the service can have delivered the request
	// twice: the connection uses TLS to one of the service's own domains (core.windows.net, core.chinacloudapi.cn,
	// core.usgovcloudapi.net, storage.azure.net), or it is on the loopback interface. Then the change was not applied.
	// On other paths (plain HTTP, a custom domain, a front door) the outcome is unknown. Where a company inspects TLS with
	// certificates of its own, an intermediary terminates the connection unseen, as does a proxy on the loopback
	// interface: ConfirmAlways is for these.
	ConfirmByPath Confirm = iota

	// ConfirmAlways takes a conflict without a proof for an unknown outcome.
	ConfirmAlways

	// ConfirmNever believes every conflict.
	ConfirmNever
)

// WithDefaults returns s with its defaults filled in, or an error that names the field that is out of range.
func (s SendOptions) WithDefaults() (SendOptions, error) {
	s.LineageSize = cmp.Or(s.LineageSize, DefaultLineageSize)
	s.Tries = cmp.Or(s.Tries, 6)
	s.TryTimeout = cmp.Or(s.TryTimeout, 30*time.Second)
	s.MinRate = cmp.Or(s.MinRate, DefaultMinRate)
	s.Grace = cmp.Or(s.Grace, 2*time.Second)
	s.Pause = OrBackoff(s.Pause, 200*time.Millisecond, 10*time.Second)
	if s.LineageSize > maxLineageSize {
		return s, fmt.Errorf("LineageSize: %d is more than %d, which would not fit the 8 KB of metadata", s.LineageSize, maxLineageSize)
	}
	if s.ConfirmConflicts > ConfirmNever {
		return s, fmt.Errorf("ConfirmConflicts: %d is none of ConfirmByPath, ConfirmAlways and ConfirmNever", s.ConfirmConflicts)
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

// DefaultMinRate is the slowest transfer, in bytes per second, that a try waits for if SendOptions.MinRate is 0.
const DefaultMinRate = 64 << 10
