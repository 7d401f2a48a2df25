package samba

import (
	"errors"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
)

func TestARangeThatAClientLockedIsRefusedAndTheRestIsNot(t *testing.T) {
	s := Start(t)
	b, c, other := NewBridge(t, s), dial(t, s), dial(t, s)
	place(t, s, "f")
	readWrite := Open{Access: AccessRead | AccessWrite, Share: ShareAll}
	held, second := open(t, c, "f", readWrite), open(t, other, "f", readWrite)
	if err := held.Lock(0, 2); err != nil {
		t.Fatal(err)
	}
	for _, op := range []string{opGet, opPutRange} {
		wantCode(t, op, do(t.Context(), b.File("f"), op), 409, "FileLockConflict")
	}
	for _, op := range []string{opSetMetadata, opListRanges} {
		wantOK(t, op, do(t.Context(), b.File("f"), op))
	}
	resp, err := b.File("f").DownloadStream(t.Context(), &file.DownloadStreamOptions{Range: file.HTTPRange{Offset: 2, Count: 3}})
	wantOK(t, "the bytes behind it", err)
	if err == nil {
		wantOK(t, "the bytes behind it", resp.Body.Close())
	}
	if err := second.Lock(1, 2); !errors.Is(err, StatusLockNotGranted) {
		t.Errorf("a lock across it: %v", err)
	}
	if err := second.WriteAt(0, []byte("x")); !errors.Is(err, StatusFileLockConflict) {
		t.Errorf("a write by another client: %v", err)
	}
	if err := held.Unlock(0, 2); err != nil {
		t.Fatal(err)
	}
	for _, op := range []string{opGet, opPutRange} {
		wantOK(t, op+", unlocked", do(t.Context(), b.File("f"), op))
	}
}

// The documentation has two statuses for it: 412 on the page about writes, and 409 in the list of codes.
func TestAReadOnlyFileIsReadAndNotWritten(t *testing.T) {
	s := Start(t)
	b, c := NewBridge(t, s), dial(t, s)
	place(t, s, "f")
	attributes := Open{Access: AccessAttributes | AccessWriteAttributes, Share: ShareAll}
	set := func(on bool) {
		t.Helper()
		f := open(t, c, "f", attributes)
		if err := errors.Join(f.SetReadOnly(on), f.Close()); err != nil {
			t.Fatal(err)
		}
		if f = open(t, c, "f", attributes); f.ReadOnly != on {
			t.Skip("SKIP: the file system has no extended attributes, in which Samba keeps the mark")
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	set(true)
	for _, op := range []string{opCreate, opSetProperties, opSetMetadata, opPutRange} {
		wantCode(t, op, do(t.Context(), b.File("f"), op), 412, "ReadOnlyAttribute")
	}
	wantCode(t, opDelete, do(t.Context(), b.File("f"), opDelete), 409, "ReadOnlyAttribute")
	for _, op := range []string{opGet, opListRanges} {
		wantOK(t, op, do(t.Context(), b.File("f"), op))
	}
	set(false)
	for _, op := range []string{opPutRange, opDelete} {
		wantOK(t, op+", writable again", do(t.Context(), b.File("f"), op))
	}
}
