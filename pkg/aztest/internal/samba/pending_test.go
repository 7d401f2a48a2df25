package samba

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
)

// The scenario of a pending deletion in the article "Managing concurrency in Azure Files".

const deletePending = "SMBDeletePending"

// everyOperation are the operations of the table, and the one that needs no access.
func everyOperation(t *testing.T, f *file.Client, want func(operation string, err error)) {
	t.Helper()
	for _, op := range operationsOnFiles {
		want(op.name, op.do(t.Context(), f))
	}
	_, err := f.GetProperties(t.Context(), nil)
	want(opGetProperties, err)
}

func wantPending(t *testing.T, b *Bridge, when string) {
	t.Helper()
	everyOperation(t, b.File("f"), func(op string, err error) { wantCode(t, when+": "+op, err, 409, deletePending) })
	if names := listed(t, b.Share().NewRootDirectoryClient()); len(names) != 0 {
		t.Errorf("%s: listed are %q", when, names)
	}
}

func wantGone(t *testing.T, s *Server, b *Bridge) {
	t.Helper()
	everyOperation(t, b.File("f"), func(op string, err error) {
		if op != opCreate { // the first, or the file would exist for the others
			wantCode(t, "once it is gone: "+op, err, 404, "ResourceNotFound")
			return
		}
		wantOK(t, op, err)
		if _, err := b.File("f").Delete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := os.Stat(filepath.Join(s.Dir, "f")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}

var deleter = Open{Access: AccessRead | AccessDelete, Share: ShareAll}

func TestAFileThatIsMarkedIsPendingUntilTheLastOpenIsClosed(t *testing.T) {
	s := Start(t)
	b, first, second := NewBridge(t, s), dial(t, s), dial(t, s)
	place(t, s, "f")
	marker, other := open(t, first, "f", deleter), open(t, second, "f", Open{Access: AccessRead, Share: ShareAll})
	if names := listed(t, b.Share().NewRootDirectoryClient()); len(names) != 1 {
		t.Fatalf("listed are %q", names)
	}
	if err := marker.MarkDeleted(true); err != nil {
		t.Fatal(err)
	}
	wantPending(t, b, "marked")
	if _, err := second.Create("f", Open{Access: AccessRead, Share: ShareAll}); !errors.Is(err, StatusDeletePending) {
		t.Errorf("a second open: %v", err)
	}
	if data, err := other.ReadAt(0, 9); err != nil || string(data) != content {
		t.Errorf("who has it open reads %q, %v", data, err)
	}
	if err := marker.Close(); err != nil {
		t.Fatal(err)
	}
	wantPending(t, b, "closed by who marked it")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	wantGone(t, s, b)
}

func TestAFileThatIsDeletedOnCloseIsPendingFromThatCloseOn(t *testing.T) {
	s := Start(t)
	b, c := NewBridge(t, s), dial(t, s)
	place(t, s, "f")
	o := deleter
	o.Options = OptionDeleteOnClose
	marker, other := open(t, c, "f", o), open(t, c, "f", Open{Access: AccessRead, Share: ShareAll})
	wantOK(t, "read while it is only going to be marked", do(t.Context(), b.File("f"), opGet))
	if err := marker.Close(); err != nil {
		t.Fatal(err)
	}
	wantPending(t, b, "closed by who opened it that way")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	wantGone(t, s, b)
}

// A 404 would have been wrong: the client may clear the mark.
func TestAMarkThatIsTakenBackLeavesTheFileAsItWas(t *testing.T) {
	s := Start(t)
	b, c := NewBridge(t, s), dial(t, s)
	place(t, s, "f")
	marker := open(t, c, "f", deleter)
	for _, marked := range []bool{true, false, true, false} {
		if err := marker.MarkDeleted(marked); err != nil {
			t.Fatal(err)
		}
		if marked {
			wantPending(t, b, "marked")
			continue
		}
		wantOK(t, "taken back", do(t.Context(), b.File("f"), opGet))
	}
	if err := marker.Close(); err != nil {
		t.Fatal(err)
	}
	if names := listed(t, b.Share().NewRootDirectoryClient()); len(names) != 1 {
		t.Errorf("listed are %q", names)
	}
	if data := contentOf(t, b.File("f")); data != content {
		t.Errorf("it has %q in it", data)
	}
}

func TestADeletionOverRESTIsNeverPending(t *testing.T) {
	s := Start(t)
	b, c := NewBridge(t, s), dial(t, s)
	place(t, s, "f")
	held := open(t, c, "f", deleter)
	wantCode(t, "while a client has it open", do(t.Context(), b.File("f"), opDelete), 409, sharingViolation)
	again := open(t, c, "f", deleter) // so the refusal has not marked the file
	for _, f := range []*File{held, again} {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wantOK(t, "once it is closed", do(t.Context(), b.File("f"), opDelete))
	wantGone(t, s, b)
}
