package pessimistic

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
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

// order is the part of a lock's record that orders its waiters: see "Waiting in order" in doc.go. All that follows is about order
// and pace. Who holds the lock is decided by its lease alone, so a wrong or forged value costs time and fairness, and nothing else.
type order struct {
	turn   int64         // the number of the present turn, which a hand-over within a process continues; 0 if the record says nothing
	next   int64         // the first ticket that has not had its turn
	issued int64         // how many tickets the holder knows of
	length time.Duration // from one turn to the next, on average; 0 if unknown
}

// Bounds of what is believed. No lock has had more turns or tickets, and no longer turn tells when the next one ends.
const (
	mostTickets = int64(1) << 53
	longestTurn = time.Hour
)

// parseOrder reads the form that String writes. Any other says nothing.
func parseOrder(s string) order {
	fields := strings.Fields(s)
	if len(s) > 80 || len(fields) != 4 {
		return order{}
	}
	var numbers [4]int64
	for i, field := range fields {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil || n < 0 || n > mostTickets {
			return order{}
		}
		numbers[i] = n
	}
	length := time.Duration(min(numbers[3], longestTurn.Milliseconds())) * time.Millisecond
	return order{turn: numbers[0], next: numbers[1], issued: numbers[2], length: length}
}

// String returns the numbers, and the length in milliseconds.
func (o order) String() string {
	return fmt.Sprintf("%d %d %d %d", o.turn, o.next, o.issued, o.length.Milliseconds())
}

// waiting returns how many tickets are known that have not had their turn.
func (o order) waiting() int64 { return max(o.issued-o.next, 0) }

// latestOrder returns the order of locks that share their tickets: the record of the latest turn says how far they have been
// served, and any record of that age or an older one may know of another ticket.
func latestOrder(all ...order) (latest order) {
	for _, o := range all {
		if c := cmp.Or(cmp.Compare(o.turn, latest.turn), cmp.Compare(o.next, latest.next)); c > 0 {
			latest, o = o, latest
		}
		if o.next <= latest.next {
			latest.issued = max(latest.issued, o.issued)
		}
	}
	return latest
}

// unusual is how many times as long, or as short, as the usual turn one turn may be, for what it teaches.
const unusual = 4

// taken returns the order that the next holder, who has ticket t, writes into the record. watched is how long it has seen
// the lock being held by others, in so many turns.
func (o order) taken(t ticket, watched time.Duration, turns float64) order {
	o.turn++
	if t.number > 0 {
		if t.fresh && t.number <= o.next {
			o.next, o.issued = 0, 0
		}
		o.next, o.issued = max(o.next, t.number), max(o.issued, t.number)
	}
	if o.waiting() > crowd {
		o.issued = o.next // forged, or of a blob that is gone: those who wait are found at the release
	}
	if turns > 0 {
		seen := min(max(time.Duration(float64(watched)/turns), time.Millisecond), longestTurn)
		if o.length > 0 {
			seen = min(o.length+(seen-o.length)/4, unusual*seen)
		}
		o.length = seen
	}
	return o
}

// crowd is the largest number of waiters that a record may have.
const crowd = 10_000

// abandoned returns the order after all the tickets that are known were passed over.
func (o order) abandoned() order {
	o.next = max(o.next, o.issued)
	return o
}
