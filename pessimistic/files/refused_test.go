package files

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/lease"
)

func TestAnErrorOfChangeIsReturnedAndNothingIsWritten(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		fill(t, s, f, []byte("abc"))
		no := errors.New("no")
		out, err := Update(t.Context(), f, func(context.Context, []byte) ([]byte, error) { return nil, no }, &UpdateOptions{ranges: ranges{span: testSpan}})
		if !errors.Is(err, no) || out.Changed || leaseState(t, NewFile(f)) != lease.Available {
			t.Errorf("%+v, %v", out, err)
		}
		out, err = Update(t.Context(), f, func(_ context.Context, old []byte) ([]byte, error) { old[0] = 'x'; return old, nil }, &UpdateOptions{ranges: ranges{span: testSpan}})
		if err != nil || !out.Changed || string(stored(t, s, f)) != "xbc" {
			t.Errorf("a change in place: %+v, %v", out, err)
		}
		for name, o := range map[string]*UpdateOptions{"reading": {Limit: 2}, "writing": {Limit: 3}} {
			out, err = Update(t.Context(), f, to([]byte("abcd")), o)
			if err == nil || !strings.Contains(err.Error(), "Limit") || out.Changed || leaseState(t, NewFile(f)) != lease.Available {
				t.Errorf("a limit for %s: %+v, %v", name, out, err)
			}
		}
		func() {
			defer func() { _ = recover() }()
			_, _ = Update(t.Context(), f, func(context.Context, []byte) ([]byte, error) { panic("change") }, &UpdateOptions{ranges: ranges{span: testSpan}})
		}()
		if leaseState(t, NewFile(f)) != lease.Available {
			t.Error("a panic leaves the lease")
		}
	})
}

func TestAnUpdateWaitsForSMBClientsOrNamesThem(t *testing.T) {
	writer := aztest.SMBHandle{ID: "1", ClientName: "desk", Write: true, ShareRead: true, ShareWrite: true, ShareDelete: true}
	reader := aztest.SMBHandle{ID: "1", ClientName: "desk", ShareRead: true} // lets nobody write, not even a heartbeat
	for name, h := range map[string]aztest.SMBHandle{"a writer": writer, "a reader who lets nobody write": reader} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			s.OpenSMB("box", "f", h)
			o := &UpdateOptions{ranges: ranges{span: testSpan}, Acquire: pessimistic.AcquireOptions{MaxWait: 3 * time.Second, Poll: pollEach(2 * time.Second)}}
			_, err := Update(t.Context(), f, to([]byte("xyz")), o)
			used, ok := errors.AsType[*InUseError](err)
			if !ok || used.Reason != azerr.OpenHandle || len(used.Handles) != 1 || used.Waited != 3*time.Second || leaseState(t, NewFile(f)) != lease.Available {
				t.Fatalf("%s: %v", name, err)
			}
			o.Acquire.MaxWait = 0
			time.AfterFunc(5*time.Second, func() { s.CloseSMB("box", "f", "1") })
			began := time.Now()
			if _, err := Update(t.Context(), f, to([]byte("xyz")), o); err != nil || time.Since(began) > 7*time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
		})
	}
	// One who comes when the lease is held.
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		open := func(_ context.Context, _ []byte) ([]byte, error) {
			s.OpenSMB("box", "f", reader)
			return []byte("xyz"), nil
		}
		out, err := Update(t.Context(), f, open, &UpdateOptions{ranges: ranges{span: testSpan}})
		if used, ok := errors.AsType[*InUseError](err); !ok || used.Reason != azerr.OpenHandle || out.Changed {
			t.Errorf("without waiting: %v", err)
		}
		s.CloseSMB("box", "f", "1")
		time.AfterFunc(5*time.Second, func() { s.CloseSMB("box", "f", "1") })
		if out, err := Update(t.Context(), f, open, &UpdateOptions{ranges: ranges{span: testSpan}, Wait: &WaitOptions{}}); err != nil || !out.Changed {
			t.Errorf("waiting: %+v, %v", out, err)
		}
	})
}

func TestAReadOnlyFileIsNotUpdatedAndNotWaitedFor(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		readOnly := &file.SMBProperties{Attributes: &file.NTFSFileAttributes{ReadOnly: true}}
		if _, err := f.SetHTTPHeaders(t.Context(), &file.SetHTTPHeadersOptions{SMBProperties: readOnly}); err != nil {
			t.Fatal(err)
		}
		s.Reset()
		out, err := Update(t.Context(), f, to([]byte("xyz")), &UpdateOptions{ranges: ranges{span: testSpan}, Wait: &WaitOptions{}})
		if azerr.Classify(err).Reason != azerr.ReadOnly || errors.Is(err, pessimistic.ErrHeld) || out.Requests != 4 || s.Requests() != 4 {
			t.Errorf("%+v, %v, sent %q", out, err, fileOps(s))
		}
	})
}

func TestAnUpdateOfAMissingFileOrUnderAForeignLease(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		out, err := Update(t.Context(), s.File("box", "missing"), to(nil), &UpdateOptions{ranges: ranges{span: testSpan}})
		if !errors.Is(err, pessimistic.ErrNotFound) || out.Requests != 1 {
			t.Errorf("%+v, %v", out, err)
		}
		l, err := pessimistic.Acquire(t.Context(), NewFile(f), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Update(t.Context(), f, to(nil), &UpdateOptions{ranges: ranges{span: testSpan}, Acquire: pessimistic.AcquireOptions{MaxWait: time.Second}})
		if held, ok := errors.AsType[*pessimistic.HeldError](err); !ok || held.Holder != locks.OwnName() {
			t.Errorf("%v", err)
		}
		released(t, l)
		s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: http.StatusForbidden, Code: "AuthorizationFailure"})
		if _, err := Update(t.Context(), f, to(nil), &UpdateOptions{ranges: ranges{span: testSpan}}); azerr.Classify(err).Code != "AuthorizationFailure" {
			t.Errorf("%v", err)
		}
	})
}
