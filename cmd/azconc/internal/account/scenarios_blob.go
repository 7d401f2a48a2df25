package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest/conformance"
)

type counter struct {
	N int `json:"n"`
}

func increment(_ context.Context, c *counter) error { c.N++; return nil }

// updateBlob: changes are applied exactly once, under contention and when responses are lost.
func updateBlob(t conformance.T, r *rig) {
	target := blobs.NewJSON[counter](r.container(t, r.lossy).NewBlockBlobClient("counter.json"))
	before := count(t, r, target, "Put Blob", "Put Blob")
	var res optimistic.Result
	var err error
	for range 2 {
		res, err = optimistic.Update(t.Context(), target, increment, &optimistic.UpdateOptions{OperationID: "conformance"})
	}
	show(t, "update again with its OperationID", "ok", outcome(err))
	show(t, "update again with its OperationID: applied before", true, res.AlreadyApplied)
	show(t, "update again with its OperationID: value", before+1, read(t, target))
}

// updateEntity: the same for an entity.
func updateEntity(t conformance.T, r *rig) {
	count(t, r, tables.NewEntity[counter](r.table(t, r.lossy), "p", "counter"), "Insert Entity", "Update Entity", "Merge Entity")
}

func read(t conformance.T, target optimistic.Target[counter]) int {
	t.Helper()
	v, err := optimistic.Read(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v.Value.N
}

// count creates a counter and updates it, alone and by several writers, with a lost response to either. It returns the last value.
func count(t conformance.T, r *rig, target optimistic.Target[counter], create string, update ...string) int {
	r.lose(create)
	res, err := optimistic.Create(t.Context(), target, counter{}, nil)
	r.lost(t)
	show(t, "create, response lost", "ok", outcome(err))
	show(t, "create, response lost: proved", 1, res.Resolved)

	done, err := contend(4, 5, func() error {
		_, err := optimistic.Update(t.Context(), target, increment, nil)
		return err
	})
	before := read(t, target)
	show(t, "4 writers × 5 updates", "ok", outcome(err))
	show(t, "4 writers × 5 updates: value less successes", 0, before-done)

	r.lose(update...)
	res, err = optimistic.Update(t.Context(), target, increment, nil)
	r.lost(t)
	after := read(t, target)
	show(t, "update, response lost", "ok", outcome(err))
	show(t, "update, response lost: applied", 1, after-before)
	show(t, "update, response lost: proved", 1, res.Resolved)
	return after
}

// foldUpdates: a Document folds concurrent updates into few writes, and counts them all.
func foldUpdates(t conformance.T, r *rig) {
	box := r.container(t, r.lossy)
	target := blobs.NewJSON[counter](box.NewBlockBlobClient("counter.json"))
	document, err := optimistic.NewDocument(target, &optimistic.DocumentOptions{Update: optimistic.UpdateOptions{Create: true}})
	if err != nil {
		t.Fatal(err)
	}
	r.faults.Reset()
	done, err := contend(16, 4, func() error { _, err := document.Update(t.Context(), increment); return err })
	requests := r.faults.Requests()
	show(t, "16 goroutines × 4 updates", "ok", outcome(err))
	show(t, "16 goroutines × 4 updates: value", done, read(t, target))
	show(t, "16 goroutines × 4 updates: fewer requests than updates", true, requests < done)
}

// holdLease: one holder at a time, even if responses are lost; a holder notices a break.
func holdLease(t conformance.T, r *rig) {
	blob := r.container(t, r.lossy).NewBlockBlobClient("leased")
	if _, err := blob.UploadBuffer(t.Context(), []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	target := pessimistic.NewBlob(blob)
	r.lose("Acquire Blob Lease")
	l, err := pessimistic.TryAcquire(t.Context(), target, &pessimistic.AcquireOptions{Duration: 15 * time.Second})
	r.lost(t)
	show(t, "acquire, response lost", "ok", outcome(err))
	if err != nil {
		return
	}
	_, err = pessimistic.TryAcquire(t.Context(), target, nil)
	is(t, "acquire while it is held", "held", err, errors.Is(err, pessimistic.ErrHeld))
	show(t, "renew", "ok", outcome(l.Renew(t.Context())))
	r.lose("Release Blob Lease")
	err = l.Release(t.Context())
	r.lost(t)
	show(t, "release, response lost", "ok", outcome(err))

	l, err = pessimistic.TryAcquire(t.Context(), target, &pessimistic.AcquireOptions{Duration: 15 * time.Second})
	show(t, "acquire what was released", "ok", outcome(err))
	if err != nil {
		return
	}
	_, err = pessimistic.Break(t.Context(), target, &pessimistic.BreakOptions{Now: true})
	show(t, "break", "ok", outcome(err))
	err = l.Renew(t.Context())
	is(t, "renew what was broken", "lost", err, errors.Is(err, pessimistic.ErrLost))
	show(t, "the context of a lease that was broken has ended", true, l.Context().Err() != nil)
	_ = l.Release(t.Context())
}

// lockAndFence: of the holders of a lock only the latest one can write.
func lockAndFence(t conformance.T, r *rig) {
	locks, data := r.container(t, r.lossy), r.container(t, r.lossy)
	locker := func(owner string) *pessimistic.Locker {
		k, err := pessimistic.NewLocker(locks, &pessimistic.LockerOptions{Owner: owner})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	target := blobs.NewJSON[counter](data.NewBlockBlobClient("counter.json"))
	if _, err := optimistic.Create(t.Context(), target, counter{}, nil); err != nil {
		t.Fatal(err)
	}
	first, second := locker("first"), locker("second")
	stale, err := first.TryLock(t.Context(), "nightly")
	show(t, "lock", "ok", outcome(err))
	if err != nil {
		return
	}
	_, err = second.TryLock(t.Context(), "nightly")
	is(t, "lock while it is held", "held", err, errors.Is(err, pessimistic.ErrHeld))
	_, err = optimistic.Update(t.Context(), blobs.Fenced(stale, target), increment, nil)
	show(t, "fenced write of the holder", "ok", outcome(err))

	_, err = second.Break(t.Context(), "nightly", &pessimistic.BreakOptions{Now: true})
	show(t, "break", "ok", outcome(err))
	next, err := second.TryLock(t.Context(), "nightly")
	show(t, "lock what was broken", "ok", outcome(err))
	if err != nil {
		return
	}
	show(t, "the fence has grown", true, next.Fence() > stale.Fence())
	_, err = optimistic.Update(t.Context(), blobs.Fenced(next, target), increment, nil)
	show(t, "fenced write of the new holder", "ok", outcome(err))
	_, err = optimistic.Update(t.Context(), blobs.Fenced(stale, target), increment, nil)
	is(t, "fenced write of the stale holder", "refused", err, err != nil)
	show(t, "writes that took effect", 2, read(t, target))
	show(t, "release", "ok", outcome(next.Release(t.Context())))
	_ = stale.Release(t.Context())

	// Every goroutine gets the lock, and no two at the same time.
	var mu sync.Mutex
	inside, most := 0, 0
	_, err = contend(3, 2, func() error {
		return locker("contender").Do(t.Context(), "nightly", nil, func(context.Context, *pessimistic.Hold) error {
			mu.Lock()
			inside++
			most = max(most, inside)
			mu.Unlock()
			mu.Lock()
			inside--
			mu.Unlock()
			return nil
		})
	})
	show(t, "3 lockers × 2 times", "ok", outcome(err))
	show(t, "3 lockers × 2 times: holders at a time", 1, most)
}
