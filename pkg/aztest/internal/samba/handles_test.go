package samba

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
)

func handlesOf(t *testing.T, f *file.Client) []*file.Handle {
	t.Helper()
	resp, err := f.ListHandles(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Handles
}

// rights returns the accesses that the handles were opened for, sorted.
func rights(handles []*file.Handle) (list []string) {
	for _, h := range handles {
		var of []string
		for _, r := range h.AccessRightList {
			of = append(of, string(*r))
		}
		list = append(list, strings.Join(of, "+"))
	}
	slices.Sort(list)
	return list
}

func closeHandles(t *testing.T, f *file.Client, id string, want int32) {
	t.Helper()
	resp, err := f.ForceCloseHandles(t.Context(), id, nil)
	if err != nil {
		t.Fatal(err)
	}
	if closed, failed := *resp.NumberOfHandlesClosed, *resp.NumberOfHandlesFailedToClose; closed != want || failed != 0 {
		t.Errorf("%d handles are closed and %d are not, want %d and 0", closed, failed, want)
	}
}

func TestHandlesSayWhoHasTheFileOpenAndForWhat(t *testing.T) {
	s := Start(t)
	s.NeedHandles(t)
	b, c, other := NewBridge(t, s), dial(t, s), dial(t, s)
	place(t, s, "f")
	place(t, s, "g")
	if list := handlesOf(t, b.File("f")); len(list) != 0 {
		t.Errorf("%d handles of a file that nobody has open", len(list))
	}
	wantOK(t, "a lease, which is no handle", do(t.Context(), b.File("g"), opLease))
	open(t, c, "f", Open{Access: AccessRead, Share: ShareAll})
	open(t, c, "f", Open{Access: AccessAttributes, Share: ShareAll})
	open(t, other, "f", Open{Access: AccessRead | AccessWrite | AccessDelete, Share: ShareAll})
	if list := handlesOf(t, b.File("g")); len(list) != 0 {
		t.Errorf("%d handles of a file that is leased", len(list))
	}
	list := handlesOf(t, b.File("f"))
	if got := fmt.Sprint(rights(list)); got != "[ Delete+Read+Write Read]" {
		t.Errorf("the handles are open for %s", got)
	}
	seen := map[string]bool{}
	for _, h := range list {
		seen[*h.ID] = true
		if *h.Path != "f" || *h.FileID == "" || *h.SessionID == "" || h.OpenTime.IsZero() || *h.ClientIP != c.local && *h.ClientIP != other.local {
			t.Errorf("%+v", h)
		}
	}
	if len(seen) != len(list) {
		t.Errorf("%d handles have %d ids", len(list), len(seen))
	}
	_, err := b.File("nothing").ListHandles(t.Context(), nil)
	wantCode(t, "handles of a file that is not there", err, 404, "ResourceNotFound")
}

// Samba admits a deletion next to an open for attributes alone; the service does not.
func TestADeletionFailsForAHandleWithoutAccess(t *testing.T) {
	s := Start(t)
	s.NeedHandles(t)
	b, c := NewBridge(t, s), dial(t, s)
	place(t, s, "f")
	f := open(t, c, "f", Open{Access: AccessAttributes, Share: ShareAll})
	wantCode(t, opDelete, do(t.Context(), b.File("f"), opDelete), 409, sharingViolation)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	wantOK(t, opDelete, do(t.Context(), b.File("f"), opDelete))
}

func TestAHandleThatIsClosedByForceIsLostToItsClient(t *testing.T) {
	s := Start(t)
	s.NeedHandles(t)
	b, victim, other := NewBridge(t, s), dial(t, s), dial(t, s)
	place(t, s, "f")
	lost := open(t, victim, "f", Open{Access: AccessWrite, Share: ShareAll})
	kept := open(t, other, "f", Open{Access: AccessRead, Share: ShareAll})
	for _, h := range handlesOf(t, b.File("f")) {
		if *h.ClientIP == victim.local {
			closeHandles(t, b.File("f"), *h.ID, 1)
		}
	}
	if err := lost.WriteAt(0, []byte("x")); !errors.Is(err, StatusNameDeleted) {
		t.Errorf("a write with the handle that is closed: %v", err)
	}
	if data, err := kept.ReadAt(0, 9); err != nil || string(data) != content {
		t.Errorf("a read with the other: %q, %v", data, err)
	}
	closeHandles(t, b.File("f"), "0", 0)
	closeHandles(t, b.File("f"), "*", 1)
	wantOK(t, "a deletion with nobody left", do(t.Context(), b.File("f"), opDelete))
}

func TestClosingHandlesIsTheWayOutOfAPendingDeletion(t *testing.T) {
	s := Start(t)
	s.NeedHandles(t)
	b, c, other := NewBridge(t, s), dial(t, s), dial(t, s)
	place(t, s, "f")
	marker := open(t, c, "f", deleter)
	open(t, other, "f", Open{Access: AccessRead, Share: ShareAll})
	if err := errors.Join(marker.MarkDeleted(true), marker.Close()); err != nil {
		t.Fatal(err)
	}
	wantPending(t, b, "marked")
	if list := handlesOf(t, b.File("f")); len(list) != 1 {
		t.Fatalf("%d handles", len(list))
	}
	closeHandles(t, b.File("f"), "*", 1)
	wantGone(t, s, b)
}
