package pessimistic

import (
	"maps"
	"net/url"
	"strconv"
	"time"

	"github.com/azconc/azconc/pkg/fence"
)

// The names in a lock blob's metadata. The lease id is not among them, and must never be: whoever read it could act as
// the holder, and an earlier holder would, after it was robbed (Azure/azure-event-hubs-dotnet#115).
const (
	keyKind     = "azconclock"     // marks the blob as a lock of azconc's; the value is the version of this record
	keyOwner    = "azconcowner"    // how the holder calls itself, percent-encoded
	keyNonce    = "azconcnonce"    // random, new with each acquisition
	keySince    = "azconcsince"    // when it was acquired, by the service's clock
	keyDuration = "azconcduration" // of the lease, in seconds; -1 is infinite
)

const recordVersion = "1"

// record is what a holder writes into the lock blob, once per acquisition.
type record struct {
	lock     bool // the blob is marked as a lock
	owner    string
	nonce    string
	fence    fence.Token
	since    time.Time
	duration time.Duration
}

// recordIn reads a lock blob's metadata. What is missing or damaged is empty: it is for showing, except for the fence,
// which fenceIn reads with care.
func recordIn(metadata map[string]string) record {
	r := record{lock: metadata[keyKind] != "", nonce: metadata[keyNonce]}
	if owner, err := url.PathUnescape(metadata[keyOwner]); err == nil {
		r.owner = owner
	}
	r.fence, _ = fence.Parse(metadata[fence.Key])
	r.since, _ = time.Parse(time.RFC3339, metadata[keySince])
	if seconds, err := strconv.Atoi(metadata[keyDuration]); err == nil {
		r.duration = time.Duration(seconds) * time.Second
		if seconds < 0 {
			r.duration = Infinite
		}
	}
	return r
}

// over lays the record over metadata, so that what others have put there stays.
func (r record) over(metadata map[string]string) map[string]*string {
	merged := maps.Clone(metadata)
	if merged == nil {
		merged = map[string]string{}
	}
	seconds := int(r.duration / time.Second)
	if r.duration == Infinite {
		seconds = -1
	}
	merged[keyKind] = recordVersion
	merged[keyOwner] = url.PathEscape(r.owner)
	merged[keyNonce] = r.nonce
	merged[fence.Key] = r.fence.String()
	merged[keySince] = r.since.UTC().Format(time.RFC3339)
	merged[keyDuration] = strconv.Itoa(seconds)
	return pointers(merged)
}

func pointers(metadata map[string]string) map[string]*string {
	out := make(map[string]*string, len(metadata))
	for name, value := range metadata {
		out[name] = &value
	}
	return out
}

// Holder is what a holder has written down about itself in the metadata of a lock blob or of a file. It stays there when
// the lease is over, and who holds a lease without azconc writes nothing.
type Holder struct {
	Name  string
	Since time.Time // when it acquired the lease
	Heard time.Time // when it was last there; files only
}

// Holder reads it. What is missing or damaged is empty.
func (o Observation) Holder() Holder {
	r := recordIn(o.Metadata)
	h := Holder{Name: r.owner, Since: r.since}
	h.Heard, _ = time.Parse(time.RFC3339, o.Metadata[keyBeat])
	return h
}
