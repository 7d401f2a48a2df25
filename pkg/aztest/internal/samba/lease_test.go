package samba

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

const leaseID = "00000000-0000-4000-8000-000000000001"

func leaseOf(t *testing.T, f *file.Client) *lease.FileClient {
	t.Helper()
	id := leaseID
	l, err := lease.NewFileClient(f, &lease.FileClientOptions{LeaseID: &id})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// opened opens a file as an SMB client, closes it again, and returns Samba's answer as the service's code.
func opened(t *testing.T, c *Client, o Open) string {
	t.Helper()
	f, err := c.Create("f", o)
	if errors.Is(err, StatusSharingViolation) {
		return sharingViolation
	}
	if err != nil {
		return err.Error()
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return succeeded
}

// againstLeases lists the differences from the documentation, in both directions and for all states of a lease.
func againstLeases(t *testing.T, s *Server, b *Bridge) (wrong []string) {
	t.Helper()
	c := dial(t, s)
	place(t, s, "f")
	l := leaseOf(t, b.File("f"))
	expect := func(what, got, want string) {
		if got != want {
			wrong = append(wrong, fmt.Sprintf("%s: %s, documented is %s", what, got, want))
		}
	}
	for _, row := range documentedAccesses(t) {
		o := Open{Access: row.access, Share: ShareAll}
		held := open(t, c, "f", o)
		_, err := l.Acquire(t.Context(), nil)
		expect("acquire while it is open for "+row.name, outcome(err), row.acquire)
		if err := held.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Acquire(t.Context(), nil); err != nil { // again, for the refused operations
			t.Fatal(err)
		}
		expect("leased, open for "+row.name, opened(t, c, o), row.open)
		if _, err := l.Break(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		expect("broken, open for "+row.name, opened(t, c, o), succeeded)
		if _, err := l.Release(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		expect("available, open for "+row.name, opened(t, c, o), succeeded)
	}
	return wrong
}

func TestALeaseAndTheOpensOfClientsExcludeEachOtherAsDocumented(t *testing.T) {
	s := Start(t)
	for _, wrong := range againstLeases(t, s, NewBridge(t, s)) {
		t.Error(wrong)
	}
}

func TestALeaseThatHoldsTheFileInAnotherWayIsConvicted(t *testing.T) {
	s := Start(t)
	for name, mutate := range map[string]func(*Bridge){
		"holds nothing":            func(b *Bridge) { b.hold = Open{Access: AccessAttributes, Share: ShareAll} },
		"lets writers in":          func(b *Bridge) { b.hold.Share |= ShareWrite },
		"lets deleters in":         func(b *Bridge) { b.hold.Share |= ShareDelete },
		"keeps readers out":        func(b *Bridge) { b.hold.Share = ShareNone },
		"is had despite writers":   func(b *Bridge) { b.opens[opLease] = Open{Access: AccessRead, Share: ShareAll}; b.hold.Share = ShareAll },
		"is not had with a reader": func(b *Bridge) { b.opens[opLease] = Open{Access: AccessRead, Share: ShareNone} },
	} {
		b := NewBridge(t, s)
		mutate(b)
		if wrong := againstLeases(t, s, b); len(wrong) == 0 {
			t.Errorf("a lease that %s is acquitted", name)
		}
	}
}

func TestALeasesHolderWritesAndOthersDoNot(t *testing.T) {
	s := Start(t)
	b := NewBridge(t, s)
	place(t, s, "f")
	f, c := b.File("f"), dial(t, s)
	if _, err := leaseOf(t, f).Acquire(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "without the id", do(t.Context(), f, opPutRange), 412, "LeaseIdMissing")
	wantCode(t, "an acquisition under another ID", do(t.Context(), f, opLease), 409, "LeaseAlreadyPresent")
	id := leaseID
	_, err := f.UploadRange(t.Context(), 0, streaming.NopCloser(bytes.NewReader([]byte("HE"))), &file.UploadRangeOptions{LeaseAccessConditions: &file.LeaseAccessConditions{LeaseID: &id}})
	wantOK(t, "with the id", err)
	wantOK(t, "a reader over REST", do(t.Context(), f, opGet))
	if data := contentOf(t, f); data != "HEllo" {
		t.Errorf("it has %q in it", data)
	}
	if got := opened(t, c, Open{Access: AccessWrite, Share: ShareAll}); got != sharingViolation {
		t.Errorf("after the holder's write a client opens it for writing: %s", got)
	}
	_, err = f.Delete(t.Context(), &file.DeleteOptions{LeaseAccessConditions: &file.LeaseAccessConditions{LeaseID: &id}})
	wantOK(t, "the holder's deletion", err)
	if _, err := c.Create("f", Open{Access: AccessRead, Share: ShareAll}); !errors.Is(err, StatusNameNotFound) {
		t.Errorf("once it is deleted: %v", err)
	}
}

// The library's own leases, with an SMB client as the competitor.

func mustRelease(t *testing.T, l *pessimistic.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAPessimisticLeaseKeepsAnSMBWriterOutAndLetsAReaderIn(t *testing.T) {
	s := Start(t)
	b, c := NewBridge(t, s), dial(t, s)
	place(t, s, "f")
	l, err := pessimistic.Acquire(t.Context(), files.NewFile(b.File("f")), nil)
	if err != nil {
		t.Fatal(err)
	}
	for access, want := range map[Access]string{AccessRead: succeeded, AccessWrite: sharingViolation, AccessDelete: sharingViolation} {
		if got := opened(t, c, Open{Access: access, Share: ShareAll}); got != want {
			t.Errorf("opened for %#x while it is leased: %s, want %s", uint32(access), got, want)
		}
	}
	mustRelease(t, l)
	if got := opened(t, c, Open{Access: AccessWrite, Share: ShareAll}); got != succeeded {
		t.Errorf("opened for writing once it is released: %s", got)
	}
}

func TestAPessimisticLeaseIsRefusedWhileAnSMBWriterHasTheFile(t *testing.T) {
	s := Start(t)
	b, c := NewBridge(t, s), dial(t, s)
	place(t, s, "f")
	target := files.NewFile(b.File("f"))
	held := open(t, c, "f", Open{Access: AccessWrite, Share: ShareAll})
	_, err := pessimistic.TryAcquire(t.Context(), target, nil)
	if outcome(err) != sharingViolation {
		t.Errorf("%v, want %s", err, sharingViolation)
	}
	if o := azerr.Classify(err); o.Kind != azerr.Held || o.Reason != azerr.OpenHandle {
		t.Errorf("it is %v for the reason %v", o.Kind, o.Reason)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := pessimistic.TryAcquire(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	mustRelease(t, l)
}

func TestAnAcquisitionWhoseAnswerIsLostHoldsTheFileOnce(t *testing.T) {
	s := Start(t)
	b, c := NewBridge(t, s), dial(t, s)
	place(t, s, "f")
	faults := aztest.Inject(b, 1, aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Acquire File Lease"), Count: 1})
	over, err := file.NewClientWithNoCredential(b.File("f").URL(), &file.ClientOptions{ClientOptions: policy.ClientOptions{Transport: faults}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := pessimistic.Acquire(t.Context(), files.NewFile(over), nil)
	if err != nil {
		t.Fatal(err)
	}
	if last := faults.Log()[0]; last.Fault != aztest.LoseAnswer {
		t.Errorf("the first request was %+v", last)
	}
	if got := opened(t, c, Open{Access: AccessWrite, Share: ShareAll}); got != sharingViolation {
		t.Errorf("opened for writing while it is leased: %s", got)
	}
	mustRelease(t, l)
	if got := opened(t, c, Open{Access: AccessWrite, Share: ShareAll}); got != succeeded {
		t.Errorf("opened for writing once it is released: %s", got)
	}
}
