package once

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

// once is a process of its own.
func (r *rig) once(wire policy.Transporter) *Once {
	r.t.Helper()
	r.service.BlockBlob("locks", "any") // makes the container
	blobs, err := container.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		r.t.Fatal(err)
	}
	box, err := container.NewClientWithSharedKeyCredential(r.service.BlobURL()+"/locks", blobs, &container.ClientOptions{ClientOptions: policy.ClientOptions{Transport: wire}})
	if err != nil {
		r.t.Fatal(err)
	}
	locks, err := pessimistic.NewLocker(box, &pessimistic.LockerOptions{Duration: 15 * time.Second})
	if err != nil {
		r.t.Fatal(err)
	}
	tables, err := aztables.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		r.t.Fatal(err)
	}
	r.service.Table("results")
	table, err := aztables.NewClientWithSharedKey(r.service.TableURL()+"/results", tables, &aztables.ClientOptions{ClientOptions: policy.ClientOptions{Transport: wire}})
	if err != nil {
		r.t.Fatal(err)
	}
	o, err := New(locks, table, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return o
}

func TestAKeyIsDoneOnceAndReplayed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		runs := 0
		work := func(context.Context, *pessimistic.Hold) ([]byte, error) { runs++; return []byte("result"), nil }
		o := r.once(r.service)
		if _, err := o.Do(t.Context(), "warm", nil, work); err != nil { // the first time also makes the lock
			t.Fatal(err)
		}
		r.service.Reset()
		first, err := o.Do(t.Context(), "a/b ü", []byte("pay"), work)
		if err != nil || first.Replayed || string(first.Value) != "result" || r.service.Requests() != 8 {
			t.Errorf("%+v, %v after %d requests", first, err, r.service.Requests())
		}
		r.service.Reset()
		again, err := r.once(r.service).Do(t.Context(), "a/b ü", []byte("pay"), work)
		if err != nil || !again.Replayed || string(again.Value) != "result" || r.service.Requests() != 1 || runs != 2 {
			t.Errorf("%+v, %v after %d requests and %d runs", again, err, r.service.Requests(), runs)
		}
		if _, err := o.Do(t.Context(), "a/b ü", []byte("other"), work); !errors.Is(err, ErrMismatch) {
			t.Errorf("another payload: %v", err)
		}
		failed := errors.New("failed")
		for range 2 { // what has failed is not stored
			if _, err := o.Do(t.Context(), "failing", nil, func(context.Context, *pessimistic.Hold) ([]byte, error) { runs++; return nil, failed }); !errors.Is(err, failed) {
				t.Errorf("err = %v", err)
			}
		}
		if runs != 4 {
			t.Errorf("%d runs", runs)
		}
		if _, err := o.Do(t.Context(), "", nil, work); err == nil {
			t.Error("no key: no error")
		}
	})
}

// A result without content is a result.
func TestAnEmptyResultIsReplayed(t *testing.T) {
	for name, value := range map[string][]byte{"nil": nil, "empty": {}} {
		inBubble(t, func(t *testing.T, r *rig) {
			runs := 0
			for _, replayed := range []bool{false, true, true} {
				out, err := r.once(r.service).Do(t.Context(), "k", nil, func(context.Context, *pessimistic.Hold) ([]byte, error) { runs++; return value, nil })
				if err != nil || out.Replayed != replayed || len(out.Value) != 0 || (out.Value == nil) != (value == nil) || runs != 1 {
					t.Errorf("%s: %+v, %v after %d runs", name, out, err, runs)
				}
			}
		})
	}
}

// meanwhile runs a function before the second request.
type meanwhile struct {
	next     policy.Transporter
	requests int
	do       func()
}

func (m *meanwhile) Do(r *http.Request) (*http.Response, error) {
	if m.requests++; m.requests == 2 {
		m.do()
	}
	return m.next.Do(r)
}

// A process finishes the key after another has read that there is no result, and before that one has the lock.
func TestAKeyThatIsDoneBeforeTheLockIsHeldIsReplayed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		first := r.once(r.service)
		second := r.once(&meanwhile{next: r.service, do: func() {
			out, err := first.Do(t.Context(), "k", nil, func(context.Context, *pessimistic.Hold) ([]byte, error) { return []byte("first"), nil })
			if err != nil || out.Replayed {
				t.Errorf("%+v, %v", out, err)
			}
		}})
		out, err := second.Do(t.Context(), "k", nil, func(context.Context, *pessimistic.Hold) ([]byte, error) {
			t.Error("the function ran twice")
			return nil, nil
		})
		if err != nil || !out.Replayed || string(out.Value) != "first" {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

func TestASecondRunIsRefusedAndTakesOverAfterACrash(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		wire := aztest.Inject(r.service, 1)
		dying, next := r.once(wire), r.once(r.service)
		var all sync.WaitGroup
		all.Go(func() {
			_, err := dying.Do(t.Context(), "k", nil, func(ctx context.Context, _ *pessimistic.Hold) ([]byte, error) {
				<-ctx.Done()
				return []byte("late"), nil
			})
			if !errors.Is(err, pessimistic.ErrLost) {
				t.Errorf("after the lock was lost: %v", err)
			}
		})
		pass(3 * time.Second) // a lock's first fence takes up to a second
		_, err := next.Do(t.Context(), "k", nil, nil)
		if held, ok := errors.AsType[*pessimistic.HeldError](err); !errors.Is(err, ErrInProgress) || !ok || held.Holder == "" {
			t.Errorf("err = %v", err)
		}
		wire.SetFaults(aztest.Fault{Kind: aztest.LoseRequest})
		pass(time.Minute)
		out, err := next.Do(t.Context(), "k", nil, func(context.Context, *pessimistic.Hold) ([]byte, error) { return []byte("mine"), nil })
		if err != nil || string(out.Value) != "mine" {
			t.Errorf("%+v, %v", out, err)
		}
		all.Wait()
	})
}

func TestAFaultAtAnyRequestOfAOnceLosesNothing(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.LoseRequest, aztest.Throttle, aztest.FailAfterCommit, aztest.AnswerTwice} {
		for k := range 9 {
			inBubble(t, func(t *testing.T, r *rig) {
				wire := aztest.Inject(r.service, 1)
				wire.SetFaults(aztest.Fault{Kind: kind, Skip: k, Count: 1})
				runs := 0
				out, err := r.once(wire).Do(t.Context(), "k", nil, func(context.Context, *pessimistic.Hold) ([]byte, error) { runs++; return []byte("x"), nil })
				if err != nil || string(out.Value) != "x" || runs != 1 {
					t.Errorf("%s at %d: %+v, %v after %d runs:\n%v", kind, k, out, err, runs, wire.Log())
				}
				again, err := r.once(r.service).Do(t.Context(), "k", nil, nil)
				if err != nil || !again.Replayed {
					t.Errorf("%s at %d: replayed %+v, %v", kind, k, again, err)
				}
			})
		}
	}
}

// The function of a key that no row can hold, escaped, ran each time, since its result could not be stored.
func TestEveryKeyIsDoneOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		o, runs := r.once(r.service), 0
		long := strings.Repeat("長", 66)
		for n, key := range []string{strings.Repeat("長", 57), long, strings.Repeat("/", 200), strings.Repeat("\x00", 200), strings.Repeat("x", 200), "\xff!'#?", row(long)} {
			for range 2 {
				out, err := o.Do(t.Context(), key, nil, func(context.Context, *pessimistic.Hold) ([]byte, error) { runs++; return []byte(key), nil })
				if err != nil || string(out.Value) != key {
					t.Errorf("%.20q: %q, %v", key, out.Value, err)
				}
			}
			if out, done, err := o.Look(t.Context(), key); runs != n+1 || !done || string(out.Value) != key {
				t.Errorf("%.20q: %d runs, then done %v, %v", key, runs, done, err)
			}
			if gone, err := o.Forget(t.Context(), key); !gone || err != nil {
				t.Errorf("%.20q: forgotten %v, %v", key, gone, err)
			}
		}
	})
}

// A prefix of the locks that makes a partition key too long was an error only when the function had run.
func TestAnOnceWhoseLocksHaveALongPrefixStoresItsResults(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.service.BlockBlob("locks", "any") // makes the container
		locks, err := pessimistic.NewLocker(r.service.Container("locks"), &pessimistic.LockerOptions{Prefix: strings.Repeat("/", 400)})
		if err != nil {
			t.Fatal(err)
		}
		o, err := New(locks, r.service.Table("results"), nil)
		if err != nil {
			t.Fatal(err)
		}
		runs := 0
		for range 2 {
			if _, err := o.Do(t.Context(), "k", nil, func(context.Context, *pessimistic.Hold) ([]byte, error) { runs++; return nil, nil }); err != nil {
				t.Error(err)
			}
		}
		if runs != 1 {
			t.Errorf("%d runs", runs)
		}
	})
}

// The table had to exist: without it the function ran, and its result could not be stored.
func TestOnceCreatesItsTable(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		o, runs := r.once(r.service), 0
		work := func(context.Context, *pessimistic.Hold) ([]byte, error) { runs++; return []byte("result"), nil }
		if _, err := o.Do(t.Context(), "warm", nil, work); err != nil { // the first time also makes the lock
			t.Fatal(err)
		}
		if _, err := r.service.Table("results").Delete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if _, done, err := o.Look(t.Context(), "k"); done || err != nil {
			t.Errorf("looked at without a table: %v, %v", done, err)
		}
		if gone, err := o.Forget(t.Context(), "k"); gone || err != nil {
			t.Errorf("forgotten without a table: %v, %v", gone, err)
		}
		if n, err := o.GC(t.Context(), time.Hour); n != 0 || err != nil {
			t.Errorf("collected without a table: %d, %v", n, err)
		}
		r.service.Reset()
		for n, requests := range []int{9, 1} {
			if out, err := o.Do(t.Context(), "k", nil, work); err != nil || string(out.Value) != "result" || r.service.Requests() != requests || runs != 2 {
				t.Errorf("%d: %q, %v, %d runs, %d requests, want %d: %v", n, out.Value, err, runs, r.service.Requests(), requests, r.ops())
			}
			r.service.Reset()
		}
	})
}

func TestOnceRunsNothingIfItsTableCannotBeCreated(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		wire := aztest.Inject(r.service, 1)
		o := r.once(wire)
		if _, err := r.service.Table("results").Delete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		wire.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationPermissionMismatch", Match: aztest.Op("Create Table")})
		_, err := o.Do(t.Context(), "k", nil, func(context.Context, *pessimistic.Hold) ([]byte, error) { t.Error("it runs"); return nil, nil })
		if err == nil || !strings.Contains(err.Error(), "results") {
			t.Errorf("err = %v", err)
		}
	})
}

// locks returns the names of the lock blobs that exist.
func (r *rig) locks() (names []string) {
	r.t.Helper()
	for pager := r.service.Container("locks").NewListBlobsFlatPager(nil); pager.More(); {
		page, err := pager.NextPage(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		for _, one := range page.Segment.BlobItems {
			names = append(names, *one.Name)
		}
	}
	return names
}

// TestTheLockOfACompletedKeyIsRemoved: a job a minute left 525,600 blobs a year.
func TestTheLockOfACompletedKeyIsRemoved(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		work := func(context.Context, *pessimistic.Hold) ([]byte, error) { return nil, nil }
		first := r.once(r.service)
		if _, err := first.Do(t.Context(), "k", nil, work); err != nil || r.ops()["Delete Blob"] != 1 || r.ops()["Release Blob Lease"] != 0 {
			t.Errorf("%v: %v", err, r.ops())
		}
		// A process that had looked before creates the lock again, finds the result and removes the lock too.
		second := r.once(&meanwhile{next: r.service, do: func() {
			if _, err := first.Do(t.Context(), "l", nil, work); err != nil {
				t.Error(err)
			}
		}})
		if out, err := second.Do(t.Context(), "l", nil, work); err != nil || !out.Replayed {
			t.Errorf("%+v, %v", out, err)
		}
		if left := r.locks(); len(left) != 0 {
			t.Errorf("locks are left: %q", left)
		}
		failed := errors.New("failed")
		for _, key := range []string{"fails", "fails"} {
			_, err := first.Do(t.Context(), key, nil, func(context.Context, *pessimistic.Hold) ([]byte, error) { return nil, failed })
			if left := r.locks(); !errors.Is(err, failed) || len(left) != 1 {
				t.Errorf("%v, %q", err, left)
			}
		}
		if _, err := first.Do(t.Context(), "fails", nil, work); err != nil || len(r.locks()) != 0 {
			t.Errorf("%v, %q", err, r.locks())
		}
	})
}

func TestALockThatKeysShareIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		o := r.once(r.service)
		o.lock = func(string) string { return "shared" }
		for range 2 {
			if _, err := o.Do(t.Context(), "k", nil, func(context.Context, *pessimistic.Hold) ([]byte, error) { return nil, nil }); err != nil {
				t.Error(err)
			}
		}
		if left := r.locks(); len(left) != 1 || left[0] != "once/shared" || r.ops()["Delete Blob"] != 0 {
			t.Errorf("left: %q", left)
		}
	})
}

// TestTheRunOfADoneKeyCannotBeTakenForOne: Begin returned neither a Run nor an error for it.
func TestTheRunOfADoneKeyCannotBeTakenForOne(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		o := r.once(r.service)
		run, err := o.Begin(t.Context(), "k", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run.Finish(t.Context(), []byte("result")); err != nil {
			t.Fatal(err)
		}
		if err := run.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, begin := range map[string]func() (*Run, error){
			"Begin": func() (*Run, error) { return o.Begin(t.Context(), "k", nil) },
			"Await": func() (*Run, error) { return o.Await(t.Context(), "k", nil, Wait{}) },
		} {
			r.service.Reset()
			run, err := begin()
			done, ok := errors.AsType[*DoneError](err)
			if run != nil || !errors.Is(err, ErrDone) || !ok || string(done.Result.Value) != "result" || !done.Result.Replayed || r.service.Requests() != 1 {
				t.Errorf("%s: %v, %v in %d requests", name, run, err, r.service.Requests())
			}
		}
	})
}
