package pessimistic

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/url"
	"strconv"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/lease"
)

// The names in a lock blob's metadata, beside those of package locks. The lease id is not among them: an earlier holder would act as the
// holder after losing its lease (Azure/azure-event-hubs-dotnet#115).
const (
	keyKind     = "azconclock"     // set when the blob is created: see kindOwn
	keyNonce    = "azconcnonce"    // random, new with each acquisition
	keyDuration = "azconcduration" // of the lease, in seconds; -1 is infinite
	keySeal     = "azconcseal"     // shows that the fence was written together with the nonce: see record.seal
	keyOrder    = "azconcorder"    // who is next: see order
)

// kindOwn marks a blob that azconc created as a lock, and that GC may delete.
const kindOwn = "2"

// record is written into the lock blob by each holder, once per acquisition.
type record struct {
	lock     bool // there is a record, or the mark of a lock that was never held
	own      bool // azconc created the blob
	sealed   bool // the fence was written together with the nonce
	owner    string
	nonce    string
	fence    fence.Token
	since    time.Time
	duration time.Duration
	order    order
}

// recordIn reads a lock blob's metadata. Missing or damaged fields are empty: they are for display, except for the
// fence, which fenceIn checks.
func recordIn(metadata map[string]string) record {
	r := record{nonce: metadata[keyNonce], own: metadata[keyKind] == kindOwn}
	r.lock = metadata[keyKind] != "" || r.nonce != ""
	if owner, err := url.PathUnescape(metadata[locks.KeyOwner]); err == nil {
		r.owner = owner
	}
	r.fence, _ = fence.Parse(metadata[fence.Key])
	r.sealed = r.nonce != "" && metadata[keySeal] == r.seal()
	r.order = parseOrder(metadata[keyOrder])
	r.since, _ = time.Parse(time.RFC3339, metadata[locks.KeySince])
	if seconds, err := strconv.Atoi(metadata[keyDuration]); err == nil {
		r.duration = time.Duration(seconds) * time.Second
		if seconds < 0 {
			r.duration = Infinite
		}
	}
	return r
}

// over merges the record into metadata, keeping entries of other writers.
func (r record) over(metadata map[string]string) map[string]*string {
	merged := maps.Clone(metadata)
	if merged == nil {
		merged = map[string]string{}
	}
	seconds := int(r.duration / time.Second)
	if r.duration == Infinite {
		seconds = -1
	}
	merged[locks.KeyOwner] = url.PathEscape(r.owner)
	merged[keyNonce] = r.nonce
	merged[fence.Key] = r.fence.String()
	merged[locks.KeySince] = r.since.UTC().Format(time.RFC3339)
	merged[keyDuration] = strconv.Itoa(seconds)
	merged[keySeal] = r.seal()
	if merged[keyOrder] = r.order.String(); sizeOf(merged) > metadataLimit {
		delete(merged, keyOrder) // it must not cost the lock
	}
	return pointers(merged)
}

// metadataLimit is the largest total size of names and values (REST: "Set Blob Metadata", 8 KB).
const metadataLimit = 8 << 10

func sizeOf(metadata map[string]string) (bytes int) {
	for name, value := range metadata {
		bytes += len(name) + len(value)
	}
	return bytes
}

// seal shows that the fence and the nonce belong together. It does not protect against forgery, but distinguishes a
// fence that was edited, or partly restored from a copy of the metadata, from one that a holder has written.
func (r record) seal() string {
	sum := sha256.Sum256([]byte(r.fence.String() + " " + r.nonce))
	return hex.EncodeToString(sum[:8])
}

func pointers(metadata map[string]string) map[string]*string {
	out := make(map[string]*string, len(metadata))
	for name, value := range metadata {
		out[name] = &value
	}
	return out
}

// recordOf returns the holder's record if it can belong to the present lease: a holder with expiring leases has no
// infinite one, nor the reverse. If they do not match, the lease belongs to a program that does not use azconc.
func recordOf(o lease.Observation) record {
	r := recordIn(o.Metadata)
	if o.State == lease.Leased && r.duration != 0 && (o.Term == lease.InfiniteTerm) != (r.duration == Infinite) {
		r.owner, r.since, r.duration = "", time.Time{}, 0
		if o.Term == lease.InfiniteTerm {
			r.duration = Infinite
		}
	}
	return r
}
