package scene

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/azconc/azconc/pkg/azaccount"
)

// Scene is one of the scenes.
type Scene struct {
	Name  string            // as --scene takes it
	Shows string            // in one line
	Needs azaccount.Service // beside blobs; "" if nothing
	play  func(ctx context.Context, s *stage)
}

// Result is a scene that was played.
type Result struct {
	Name    string  `json:"name"`
	Shows   string  `json:"shows"`
	Outcome string  `json:"outcome"` // done, skipped or failed
	Reason  string  `json:"reason,omitempty"`
	Acts    []Act   `json:"acts"`
	Events  []Event `json:"events"`
}

// All are the scenes, in the order in which they are shown.
var All = []Scene{
	{"strategies", "the three strategies: optimistic, pessimistic, last writer wins", "", strategies},
	{"editors", "two editors of a wiki page, and nobody's text is lost", "", editors},
	{"last-writer-wins", "the same without conditions: the first editor's text is lost", "", lastWriterWins},
	{"stale-etag", "a write with a stale ETag is refused: 412", "", staleETag},
	{"conditions", "the four conditional headers on reads and writes", "", conditions},
	{"lost-response", "a write whose response is lost is applied once", "", lostResponse},
	{"blob-operations", "blocks, metadata, snapshots and copies: what returns an ETag, what takes a condition", "", blobOperations},
	{"container-operations", "a container's metadata and policy have conditions by time only; azconc takes its lease", "", containerOperations},
	{"lease", "a second lease is refused: 409; a write without the lease: 412", "", leaseScene},
	{"lease-expired", "a write under an expired lease is refused: 412", "", leaseExpired},
	{"container-lease", "a container's lease guards the container's deletion, and nothing else", "", containerLease},
	{"lease-strategies", "exclusive and shared reads and writes, by a lease", "", leaseStrategies},
	{"entity", "an entity: a stale ETag is refused, * overwrites whatever is there", azaccount.Table, entity},
	{"table-lock", "a table is locked by a blob, and a stale holder is refused by its fence", azaccount.Table, tableLock},
	{"message", "a message is received twice; a stale pop receipt is refused", azaccount.Queue, message},
	{"message-once", "a message is handled twice, and its effect happens once", azaccount.Queue, messageOnce},
	{"files", "Azure Files: leases, but no conditions on ETags", azaccount.File, filesScene},
}

// Find returns the scene with a name.
func Find(name string) (Scene, bool) {
	for _, s := range All {
		if s.Name == name {
			return s, true
		}
	}
	return Scene{}, false
}

// has reports whether the account has a service. An emulator has those that its connection string names.
func (r Rig) has(service azaccount.Service) bool {
	return r.Account.Endpoint(service) != "" && r.Account.Emulator(service) == r.Account.Emulator(azaccount.Blob)
}

// Play plays a scene. What it creates has names of its own, and is deleted at the end. The error says what did not go as
// the scene shows; the result then has what was recorded until then.
func Play(ctx context.Context, rig Rig, scene Scene) (Result, error) {
	r := Result{Name: scene.Name, Shows: scene.Shows, Outcome: "done", Acts: []Act{}, Events: []Event{}}
	if scene.Needs != "" && !rig.has(scene.Needs) {
		r.Outcome, r.Reason = "skipped", fmt.Sprintf("the account has no %s service", scene.Needs)
		return r, nil
	}
	s := &stage{rig: rig, rec: newRecorder(), name: "azconc-" + scene.Name + "-" + rig.Suffix}
	scene.play(ctx, s)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	err := s.err
	for i := len(s.ends) - 1; i >= 0; i-- {
		err = errors.Join(err, s.ends[i](ending))
	}
	s.rec.mu.Lock()
	defer s.rec.mu.Unlock()
	r.Acts, r.Events = append(r.Acts, s.rec.acts...), append(r.Events, s.rec.events...)
	for i := range r.Acts {
		if r.Acts[i].Requests == nil {
			r.Acts[i].Requests = []Request{}
		}
	}
	if err != nil {
		r.Outcome, r.Reason = "failed", text(err)
		return r, fmt.Errorf("scene %s: %w", scene.Name, err)
	}
	return r, nil
}
