package samba

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// waiting calls act when the code under test reports that it waits.
func waiting(t *testing.T, reason azerr.Reason, act func()) *files.WaitOptions {
	t.Helper()
	began := false
	return &files.WaitOptions{
		MaxWait: time.Minute, Poll: retry.Backoff{Base: 10 * time.Millisecond, Cap: 100 * time.Millisecond},
		Waiting: func(e files.InUseError) {
			if began {
				return
			}
			if began = true; e.Reason != reason {
				t.Errorf("the waiter waits for %v: %v", e.Reason, &e)
			}
			act()
		},
	}
}

func TestAWaiterGoesOnWhenTheClientHasClosedTheFile(t *testing.T) {
	s := Start(t)
	b := NewBridge(t, s)
	place(t, s, "f")
	handle := open(t, dial(t, s), "f", Open{Access: AccessRead | AccessWrite})
	closed := false
	f := b.File("f")
	err := files.WaitUnlocked(t.Context(), f, waiting(t, azerr.OpenHandle, func() {
		wantOK(t, "close", handle.Close())
		closed = true
	}), func(ctx context.Context) error { return do(ctx, f, opPutRange) })
	if err != nil || !closed {
		t.Errorf("%v, waited %t", err, closed)
	}
}

func TestADeletionWaitsForWhatAClientsMarkComesTo(t *testing.T) {
	for name, c := range map[string]struct {
		mark bool // cleared again
		how  files.Deletion
		err  error
	}{
		"it is gone":       {false, files.DeletedBySMB, nil},
		"it is taken back": {true, "", files.ErrUndeleted},
	} {
		t.Run(name, func(t *testing.T) {
			s := Start(t)
			b := NewBridge(t, s)
			place(t, s, "f")
			handle := open(t, dial(t, s), "f", Open{Access: AccessRead | AccessDelete, Share: ShareAll})
			wantOK(t, "mark", handle.MarkDeleted(true))
			d, err := files.Delete(t.Context(), b.File("f"), &files.DeleteOptions{Wait: waiting(t, azerr.DeletePending, func() {
				if c.mark {
					wantOK(t, "take back", handle.MarkDeleted(false))
				}
				wantOK(t, "close", handle.Close())
			})})
			if d.How != c.how || !errors.Is(err, c.err) || err != nil && c.err == nil {
				t.Errorf("%q, %v, want %q, %v", d.How, err, c.how, c.err)
			}
		})
	}
}

func TestAnUpdateIsKeptOutByAWriterAndKeepsOneOut(t *testing.T) {
	s := Start(t)
	b := NewBridge(t, s)
	place(t, s, "f")
	c := dial(t, s)
	writer := open(t, c, "f", Open{Access: AccessRead | AccessWrite, Share: ShareAll})
	change := func(context.Context, []byte) ([]byte, error) { return []byte("changed"), nil }
	brief := &files.UpdateOptions{Acquire: pessimistic.AcquireOptions{MaxWait: 1}}
	if _, err := files.Update(t.Context(), b.File("f"), change, brief); !errors.Is(err, pessimistic.ErrHeld) {
		t.Errorf("beside a writer: %v", err)
	}
	wantOK(t, "close", writer.Close())
	r, err := files.Update(t.Context(), b.File("f"), func(ctx context.Context, old []byte) ([]byte, error) {
		if _, err := c.Create("f", Open{Access: AccessRead | AccessWrite, Share: ShareAll}); !errors.Is(err, StatusSharingViolation) {
			t.Errorf("a client opens it for writing under the lease: %v", err)
		}
		return append(old, " world"...), nil
	}, nil)
	if err != nil || !r.Changed || contentOf(t, b.File("f")) != content+" world" {
		t.Errorf("%+v, %v: %q", r, err, contentOf(t, b.File("f")))
	}
	writer = open(t, c, "f", Open{Access: AccessRead | AccessWrite, Share: ShareAll}) // the lease is gone
	wantOK(t, "close", writer.Close())
}

func TestHandlesThatAreClosedByForceLetAWaiterGoOn(t *testing.T) {
	s := Start(t)
	s.NeedHandles(t)
	b := NewBridge(t, s)
	place(t, s, "f")
	open(t, dial(t, s), "f", Open{Access: AccessRead | AccessWrite})
	f := b.File("f")
	err := files.WaitClosed(t.Context(), f, waiting(t, azerr.OpenHandle, func() {
		sum, err := files.ForceClose(t.Context(), f, []string{files.AllHandles}, nil)
		if err != nil || sum.Closed != 1 {
			t.Errorf("%+v, %v", sum, err)
		}
	}))
	if err != nil {
		t.Error(err)
	}
}
