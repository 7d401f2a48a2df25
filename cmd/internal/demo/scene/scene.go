// Package scene has the scenes of azconc demo: what goes wrong with the textbook loops, what "Managing concurrency in Azure Storage"
// describes, and what azconc does, with what was sent and what came back.
//
// A scene is a list of acts, each a call by one client. A policy in each client's pipeline notes its requests and drops the responses
// that the scene loses.
package scene

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
)

// Scene is one of the scenes.
type Scene struct {
	Name  string `json:"name"`
	Shows string `json:"shows"` // in one line
	play  func(s *stage)
}

// All are the scenes, in the order in which they are shown.
var All = []Scene{
	{"lost-answers", "lost responses: a counter by the plain If-Match loop, and by azconc", lostAnswers},
	{"lost-sends", "lost responses: messages sent and handled the plain way, and by azconc", lostSends},
	{"paused-holder", "a holder that is paused writes late: its fence refuses it, and nothing else would", pausedHolder},
	{"editors", "two editors of a wiki page: a stale ETag is refused, 412; without a condition a text is lost", editors},
	{"conditions", "the four conditional headers on reads and writes", conditions},
	{"blob-operations", "blocks, metadata, snapshots and copies: what returns an ETag, what takes a condition", blobOperations},
	{"container-operations", "a container's metadata and policy have conditions by time only; azconc takes its lease", containerOperations},
	{"lease", "a second lease is refused: 409; a write without the lease: 412", leaseScene},
	{"container-lease", "a container's lease guards the container's deletion, and nothing else", containerLease},
	{"lease-strategies", "exclusive and shared reads and writes, by a lease", leaseStrategies},
	{"entity", "an entity: a stale ETag is refused, * overwrites whatever is there", entity},
	{"table-lock", "a table is locked by a blob, and a stale holder is refused by its fence", tableLock},
	{"message", "a message is received twice; a stale pop receipt is refused", message},
	{"files", "Azure Files: leases, but no conditions on ETags", filesScene},
}

// Find returns the scenes with the given names, or all if there is none. The error names one that does not exist.
func Find(names ...string) (found []Scene, err error) {
	if len(names) == 0 {
		return All, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(All, func(s Scene) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%q is not the name of a scene", name)
		}
		found = append(found, All[i])
	}
	return found, nil
}

// Result is a scene that was played.
type Result struct {
	Scene
	Outcome string  `json:"outcome"` // done, skipped or failed
	Reason  string  `json:"reason,omitempty"`
	Tallies []Tally `json:"tallies,omitempty"`
	Acts    []*Act  `json:"acts"`
}

// Tally compares the successes that one way of doing it has reported with their effects.
type Tally struct {
	Way      string `json:"way"`
	Reported int    `json:"reported"`
	Effects  int    `json:"effects"`
	Effect   string `json:"effect"` // what one is: stored or handled
	Lost     int    `json:"responses_lost"`
}

// PlayAll plays scenes side by side. The results are in the order of the scenes, also with an error, which says what did not go as a
// scene shows.
func PlayAll(ctx context.Context, rig Rig, names ...string) ([]Result, error) {
	scenes, err := Find(names...)
	if err != nil {
		return nil, err
	}
	rig.prefix = cmp.Or(rig.prefix, "azconc-"+strings.ToLower(rand.Text()[:8])+"-")
	results, errs := make([]Result, len(scenes)), make([]error, len(scenes))
	var playing sync.WaitGroup
	for i, s := range scenes {
		playing.Go(func() { results[i], errs[i] = play(ctx, rig, s) })
	}
	playing.Wait()
	return results, errors.Join(errs...)
}

// play plays a scene. What it creates has names of its own, and is deleted at the end. The error says what did not go as
// the scene shows; the result then has what was recorded until then.
func play(ctx context.Context, rig Rig, scene Scene) (Result, error) {
	s := &stage{ctx: ctx, rig: rig, name: rig.prefix + scene.Name, result: Result{Scene: scene, Outcome: "done", Acts: []*Act{}}}
	var playing sync.WaitGroup
	playing.Go(func() { // which a failed act ends
		s.crew = s.client("")
		scene.play(s)
	})
	playing.Wait()
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	err := s.err
	for _, end := range slices.Backward(s.ends) {
		err = errors.Join(err, end())
	}
	if err != nil {
		s.result.Outcome, s.result.Reason = "failed", azerr.Clean(err).Error()
		err = fmt.Errorf("scene %s: %w", scene.Name, err)
	}
	return s.result, err
}
