package pessimistic_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/election"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pessimistic/manual"
	"github.com/azconc/azconc/pessimistic/shared"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/retry"
)

// waiting is a scene in which web-1 holds what a call waits for.
type waiting struct {
	*testing.T
	s    *aztest.Service
	mine *pessimistic.Locker
}

func lockerOf(client *container.Client, owner string) *pessimistic.Locker {
	poll := retry.Backoff{Base: time.Second, Cap: time.Second}
	return must(pessimistic.NewLocker(client, &pessimistic.LockerOptions{Owner: owner, Poll: poll}))
}

// must is for what cannot fail.
func must[R any](r R, err error) R {
	if err != nil {
		panic(err)
	}
	return r
}

// held lets a Locker hold a lock until the test ends.
func (w waiting) held(k *pessimistic.Locker, name string) {
	h := must(k.Lock(w.Context(), name, nil))
	w.Cleanup(func() { _ = h.Release(context.Background()) })
}

// theirs is the Locker of web-1.
func (w waiting) theirs() *pessimistic.Locker { return lockerOf(w.s.Container("box"), "web-1") }

// first lets a goroutine of this process wait before the call does.
func (w waiting) first(wait func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(w.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = wait(ctx) })
	w.Cleanup(func() { cancel(); all.Wait() })
	bubble.Sleep(2 * time.Second)
	synctest.Wait()
}

func (w waiting) rw(k *pessimistic.Locker) *shared.RWLock {
	return must(shared.NewRWLock(k, "rw", nil))
}

func (w waiting) pool(k *pessimistic.Locker) *shared.Semaphore {
	return must(shared.NewSemaphore(k, "pool", 1))
}

// full lets web-1 hold the only slot.
func (w waiting) full() {
	slot := must(w.pool(w.theirs()).Acquire(w.Context(), nil))
	w.Cleanup(func() { _ = slot.Release(context.Background()) })
}

func (w waiting) blob() pessimistic.Resource { return pessimistic.NewBlob(w.s.BlockBlob("box", "job")) }

func (w waiting) file() pessimistic.Resource { return files.NewFile(w.s.File("share", "f")) }

// desk lets an SMB client have the file open.
func (w waiting) desk() {
	w.s.OpenSMB("share", "f", aztest.SMBHandle{ID: "1", ClientName: "desk", Write: true})
}

func waitFor(d time.Duration) *pessimistic.LockOptions { return &pessimistic.LockOptions{MaxWait: d} }

// waits are all the waits for another holder.
var waits = []struct {
	name string
	who  string // the beginning of the error
	hold func(w waiting)
	wait func(ctx context.Context, w waiting, most time.Duration) error
}{
	{"Acquire of a blob", "box/job: held by web-1 since ", func(w waiting) { w.held(w.theirs(), "job") },
		func(ctx context.Context, w waiting, most time.Duration) error {
			_, err := pessimistic.Acquire(ctx, w.blob(), &pessimistic.AcquireOptions{MaxWait: most})
			return err
		}},
	{"Acquire of a file", "share/f: held by " + locks.OwnName() + " since ", func(w waiting) {
		l := must(pessimistic.Acquire(w.Context(), w.file(), nil))
		w.Cleanup(func() { _ = l.Release(context.Background()) })
	}, func(ctx context.Context, w waiting, most time.Duration) error {
		_, err := pessimistic.Acquire(ctx, w.file(), &pessimistic.AcquireOptions{MaxWait: most})
		return err
	}},
	{"Acquire of a file that is open", "share/f: held by an SMB client, which has it open", waiting.desk,
		func(ctx context.Context, w waiting, most time.Duration) error {
			_, err := pessimistic.Acquire(ctx, w.file(), &pessimistic.AcquireOptions{MaxWait: most})
			return err
		}},
	{"Lock", "box/job: held by web-1 since ", func(w waiting) { w.held(w.theirs(), "job") },
		func(ctx context.Context, w waiting, most time.Duration) error {
			_, err := w.mine.Lock(ctx, "job", waitFor(most))
			return err
		}},
	{"Lock behind a holder of this process", "box/job: held by me in this process since ", func(w waiting) { w.held(w.mine, "job") },
		func(ctx context.Context, w waiting, most time.Duration) error {
			_, err := w.mine.Lock(ctx, "job", waitFor(most))
			return err
		}},
	{"Lock behind a waiter of this process", "box/job: held by web-1 since ", func(w waiting) {
		w.held(w.theirs(), "job")
		w.first(func(ctx context.Context) error { _, err := w.mine.Lock(ctx, "job", nil); return err })
	}, func(ctx context.Context, w waiting, most time.Duration) error {
		_, err := w.mine.Lock(ctx, "job", waitFor(most))
		return err
	}},
	{"Semaphore.Acquire", "box/pool: held by web-1 since ", waiting.full,
		func(ctx context.Context, w waiting, most time.Duration) error {
			_, err := w.pool(w.mine).Acquire(ctx, waitFor(most))
			return err
		}},
	{"Semaphore.Acquire behind a waiter of this process", "box/pool: held by web-1 since ", func(w waiting) {
		w.full()
		w.first(func(ctx context.Context) error { _, err := w.pool(w.mine).Acquire(ctx, nil); return err })
	}, func(ctx context.Context, w waiting, most time.Duration) error {
		_, err := w.pool(w.mine).Acquire(ctx, waitFor(most))
		return err
	}},
	{"RWLock.Lock behind a writer", "box/rw: held by web-1 since ", func(w waiting) { w.held(w.theirs(), "rw/gate") },
		func(ctx context.Context, w waiting, most time.Duration) error {
			_, err := w.rw(w.mine).Lock(ctx, waitFor(most))
			return err
		}},
	{"RWLock.Lock behind a reader", "box/rw: held by web-1 since ", func(w waiting) {
		slot := must(w.rw(w.theirs()).RLock(w.Context(), nil))
		w.Cleanup(func() { _ = slot.Release(context.Background()) })
	}, func(ctx context.Context, w waiting, most time.Duration) error {
		_, err := w.rw(w.mine).Lock(ctx, waitFor(most))
		return err
	}},
	{"RWLock.RLock", "box/rw: held by web-1 since ", func(w waiting) { w.held(w.theirs(), "rw/gate") },
		func(ctx context.Context, w waiting, most time.Duration) error {
			_, err := w.rw(w.mine).RLock(ctx, waitFor(most))
			return err
		}},
	{"Election.Run", "box/lead: held by web-1 since ", func(w waiting) { w.held(w.theirs(), "lead") },
		func(ctx context.Context, w waiting, most time.Duration) error {
			e := must(election.New(w.mine, "lead", &election.Options{Candidacy: waitFor(most)}))
			return e.Run(ctx, func(context.Context, *pessimistic.Hold) error { return nil })
		}},
	{"manual.Acquire", "box/job: held by another, after ", func(w waiting) { w.held(w.theirs(), "job") },
		func(ctx context.Context, w waiting, most time.Duration) error {
			if most == 0 {
				most = pessimistic.Infinite
			}
			_, err := manual.Acquire(ctx, w.blob(), &manual.AcquireOptions{Wait: most})
			return err
		}},
	{"files.Update", "share/f: held by an SMB client, which has it open", waiting.desk,
		func(ctx context.Context, w waiting, most time.Duration) error {
			_, err := files.Update(ctx, w.s.File("share", "f"), func(context.Context, []byte) ([]byte, error) { return nil, nil },
				&files.UpdateOptions{Acquire: pessimistic.AcquireOptions{MaxWait: most}})
			return err
		}},
	{"files.WaitClosed", "share/f: held by an SMB client, which has it open: desk (192.0.2.1:50000) for read, write since ", waiting.desk,
		func(ctx context.Context, w waiting, most time.Duration) error {
			return files.WaitClosed(ctx, w.s.File("share", "f"), &files.WaitOptions{MaxWait: most})
		}},
	{"files.Delete", "share/f: held by an SMB client, which has it open: desk (192.0.2.1:50000) for read, write since ", waiting.desk,
		func(ctx context.Context, w waiting, most time.Duration) error {
			_, err := files.Delete(ctx, w.s.File("share", "f"), &files.DeleteOptions{Wait: &files.WaitOptions{MaxWait: most}})
			return err
		}},
}

// looks are the requests that find out who holds something.
var looks = aztest.Op("Get Blob Properties", "List Blobs", "Get File Properties", "List Handles",
	"Acquire Blob Lease", "Acquire File Lease", "Delete File")

// during ends the context of a wait during one of these requests, or after 30 s if it sends none.
func during(these func(*aztest.Request) bool, cause error) func(context.Context, waiting, func(context.Context, time.Duration) error) error {
	return func(ctx context.Context, w waiting, wait func(context.Context, time.Duration) error) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer time.AfterFunc(30*time.Second, func() { cancel(cause) }).Stop()
		defer time.AfterFunc(4*time.Second, func() {
			w.s.SetFaults(aztest.Fault{Kind: aztest.Hang, Match: func(r *aztest.Request) bool {
				if these(r) {
					time.AfterFunc(time.Second, func() { cancel(cause); w.s.SetFaults() })
				}
				return these(r)
			}})
		}).Stop()
		return wait(ctx, 0)
	}
}

// TestAWaitThatEndsNamesTheHolder: a wait whose context ended said nothing of the lock, or not who held it, or the end came
// during a request and hid what the ones before it had found.
func TestAWaitThatEndsNamesTheHolder(t *testing.T) {
	cause := errors.New("the deployment was cancelled")
	for _, tt := range waits {
		for name, end := range map[string]func(ctx context.Context, w waiting, wait func(ctx context.Context, most time.Duration) error) error{
			"MaxWait": func(ctx context.Context, _ waiting, wait func(context.Context, time.Duration) error) error {
				return wait(ctx, 5*time.Second)
			},
			"a short MaxWait": func(ctx context.Context, _ waiting, wait func(context.Context, time.Duration) error) error {
				return wait(ctx, 30*time.Millisecond)
			},
			"a deadline": func(ctx context.Context, _ waiting, wait func(context.Context, time.Duration) error) error {
				ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
				return wait(ctx, 0)
			},
			"the end of the context": func(ctx context.Context, _ waiting, wait func(context.Context, time.Duration) error) error {
				ctx, cancel := context.WithCancelCause(ctx)
				defer time.AfterFunc(5*time.Second, func() { cancel(cause) }).Stop()
				return wait(ctx, 0)
			},
			"the end of the context during a look":         during(looks, cause),
			"the end of the context during an acquisition": during(aztest.Op("Acquire Blob Lease", "Acquire File Lease"), cause),
		} {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 5 * time.Millisecond }})
					w := waiting{t, s, lockerOf(s.Container("box"), "me")}
					if _, err := s.BlockBlob("box", "job").Upload(t.Context(), streaming.NopCloser(strings.NewReader("")), nil); err != nil {
						t.Fatal(err)
					}
					if _, err := s.File("share", "f").Create(t.Context(), 1, nil); err != nil {
						t.Fatal(err)
					}
					tt.hold(w)
					err := end(t.Context(), w, func(ctx context.Context, most time.Duration) error {
						return tt.wait(policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1}), w, most)
					})
					want := []error{cause}
					switch name {
					case "MaxWait", "a short MaxWait":
						want = []error{pessimistic.ErrHeld}
					case "a deadline": // the time that is left is too short for another try
						want = []error{context.DeadlineExceeded, pessimistic.ErrHeld}
					}
					if errors.Is(err, cause) && errors.Is(err, pessimistic.ErrHeld) && !errors.Is(err, files.ErrInUse) {
						t.Errorf("%v is taken for the end of MaxWait", err)
					}
					is := slices.ContainsFunc(want, func(one error) bool { return errors.Is(err, one) })
					if !is || !strings.HasPrefix(err.Error(), tt.who) || !strings.Contains(err.Error(), ", after waiting for ") {
						t.Errorf("err = %v, want %v, after %q", err, want, tt.who)
					}
				})
			})
		}
	}
}
