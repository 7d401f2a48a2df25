package aztest

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
)

// The sentences of "Managing concurrency in Azure Storage", section "Managing concurrency in Azure Files", one test each.

// operations are the requests about a file that the article means by "any REST operation".
func operations(f *file.Client) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"get":          func(ctx context.Context) error { _, err := f.DownloadStream(ctx, nil); return err },
		"properties":   func(ctx context.Context) error { _, err := f.GetProperties(ctx, nil); return err },
		"set metadata": func(ctx context.Context) error { _, err := f.SetMetadata(ctx, nil); return err },
		"resize":       func(ctx context.Context) error { _, err := f.Resize(ctx, 9, nil); return err },
		"create":       func(ctx context.Context) error { _, err := f.Create(ctx, 6, nil); return err },
		"delete":       func(ctx context.Context) error { _, err := f.Delete(ctx, nil); return err },
		"put range":    func(ctx context.Context) error { return put(ctx, f, "abc") },
	}
}

func put(ctx context.Context, f *file.Client, text string) error {
	_, err := f.UploadRange(ctx, 0, streaming.NopCloser(bytes.NewReader([]byte(text))), nil)
	return err
}

func filesListed(t *testing.T, s *Service) []string {
	t.Helper()
	var names []string
	pager := s.Share("box").NewRootDirectoryClient().NewListFilesAndDirectoriesPager(nil)
	for pager.More() {
		page, err := pager.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range page.Segment.Files {
			names = append(names, *one.Name)
		}
	}
	return names
}

// "The REST service does not have support for either optimistic locking or pessimistic locking and all updates will
// follow a last writer wins strategy." (Pessimistic locking has come since: leases of files.)
func TestArticleLastWriterWinsOverREST(t *testing.T) {
	_, f := newFile(t)
	for _, text := range []string{"one", "two"} {
		if err := put(t.Context(), f, text); err != nil {
			t.Fatal(err)
		}
	}
	resp, err := f.DownloadStream(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := io.ReadAll(resp.Body); string(data[:3]) != "two" {
		t.Errorf("content %q, want the last writer's", data)
	}
}

// "Setting a File Access option of Write or Read/Write along with a File Share mode of None will result in the file being
// locked by an SMB client until the file is closed."
func TestArticleAFileOpenForWritingAndNotSharedIsLockedUntilItIsClosed(t *testing.T) {
	s, _ := newFile(t)
	if got := s.OpenSMB("box", "f", SMBHandle{ID: "1", Write: true}); got != SMBOpened {
		t.Fatal(got)
	}
	if got := s.OpenSMB("box", "f", SMBHandle{ID: "2", ShareRead: true, ShareWrite: true, ShareDelete: true}); got != SMBSharingViolation {
		t.Errorf("a second client: %s", got)
	}
	s.CloseSMB("box", "f", "1")
	if got := s.OpenSMB("box", "f", SMBHandle{ID: "2", ShareRead: true, ShareWrite: true, ShareDelete: true}); got != SMBOpened {
		t.Errorf("once it is closed: %s", got)
	}
}

// "SMB clients that mount file shares can leverage file system locking mechanisms to manage access to shared files,
// including the ability to perform pessimistic locking." (What a client has locked, REST cannot have either.)
func TestArticleSMBClientsLockBytes(t *testing.T) {
	s, f := newFile(t)
	s.OpenSMB("box", "f", SMBHandle{ID: "1", Write: true, ShareRead: true, ShareWrite: true, ShareDelete: true})
	s.LockRangeSMB("box", "f", "1", 0, 2)
	for name, op := range operations(f) {
		want := map[string]string{"get": "FileLockConflict", "put range": "FileLockConflict", "delete": "SharingViolation"}[name]
		if err := op(t.Context()); fileCode(err) != want || want == "" && err != nil {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	s.CloseSMB("box", "f", "1")
	if err := put(t.Context(), f, "abc"); err != nil {
		t.Errorf("once it is closed: %v", err)
	}
}

// "If REST operation is attempted on a file where an SMB client has the file locked the REST service will return status
// code 409 (Conflict) with error code SharingViolation." (Properties and lists are answered all the same.)
func TestArticleRESTMeetsASharingViolationWhereAnSMBClientHasTheFileLocked(t *testing.T) {
	s, f := newFile(t)
	s.OpenSMB("box", "f", SMBHandle{ID: "1", Write: true})
	for name, op := range operations(f) {
		want := "SharingViolation"
		if name == "properties" {
			want = ""
		}
		if err := op(t.Context()); fileCode(err) != want || want == "" && err != nil {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if got := filesListed(t, s); len(got) != 1 {
		t.Errorf("listed: %q", got)
	}
}

// "When an SMB client opens a file for delete, it marks the file as pending delete until all other SMB client open
// handles on that file are closed. While a file is marked as pending delete, any REST operation on that file will return
// status code 409 (Conflict) with error code SMBDeletePending."
func TestArticleEveryRESTOperationMeetsAPendingDeletion(t *testing.T) {
	s, f := newFile(t)
	s.OpenSMB("box", "f", SMBHandle{ID: "1", Delete: true, ShareRead: true, ShareWrite: true, ShareDelete: true})
	s.OpenSMB("box", "f", SMBHandle{ID: "2", ShareRead: true, ShareWrite: true, ShareDelete: true})
	s.MarkDeletedSMB("box", "f", true)
	for _, id := range []string{"", "1"} {
		s.CloseSMB("box", "f", id)
		for name, op := range operations(f) {
			if err := op(t.Context()); fileCode(err) != "SMBDeletePending" {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// "Status code 404 (Not Found) is not returned since it is possible for the SMB client to remove the pending deletion
// flag prior to closing the file."
func TestArticleTheMarkCanBeTakenBack(t *testing.T) {
	s, f := newFile(t)
	s.OpenSMB("box", "f", SMBHandle{ID: "1", Delete: true, ShareRead: true, ShareWrite: true, ShareDelete: true})
	s.MarkDeletedSMB("box", "f", true)
	s.MarkDeletedSMB("box", "f", false)
	s.CloseSMB("box", "f", "1")
	if err := put(t.Context(), f, "abc"); err != nil {
		t.Errorf("the file was not to be deleted after all: %v", err)
	}
}

// "In other words, status code 404 (Not Found) is only expected when the file has been removed."
func TestArticleNotFoundIsSaidOnlyOnceTheFileIsGone(t *testing.T) {
	s, f := newFile(t)
	s.OpenSMB("box", "f", SMBHandle{ID: "1", Delete: true, ShareRead: true, ShareWrite: true, ShareDelete: true})
	s.MarkDeletedSMB("box", "f", true)
	if _, err := f.DownloadStream(t.Context(), nil); fileCode(err) == "ResourceNotFound" {
		t.Error("it is said to be gone while it is pending")
	}
	s.CloseSMB("box", "f", "1")
	if _, err := f.DownloadStream(t.Context(), nil); fileCode(err) != "ResourceNotFound" {
		t.Errorf("after the last handle: %v", err)
	}
}

// "Note that while a file is in a SMB pending delete state, it will not be included in the List Files results."
func TestArticleAFileIsNotListedWhileItsDeletionIsPending(t *testing.T) {
	s, _ := newFile(t)
	s.OpenSMB("box", "f", SMBHandle{ID: "1", Delete: true, ShareRead: true, ShareWrite: true, ShareDelete: true})
	for _, marked := range []bool{true, false} {
		s.MarkDeletedSMB("box", "f", marked)
		if got := filesListed(t, s); (len(got) == 0) != marked {
			t.Errorf("marked %v: listed %q", marked, got)
		}
	}
}

// "Also, note that the REST Delete File and REST Delete Directory operations are committed atomically and do not result
// in a pending delete state."
func TestArticleRESTDeletesAtOnceAndWhole(t *testing.T) {
	s, f := newFile(t)
	dir := s.Share("box").NewDirectoryClient("d")
	if _, err := dir.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	inside := dir.NewFileClient("g")
	if _, err := inside.Create(t.Context(), 1, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Delete(t.Context(), nil); fileCode(err) != "DirectoryNotEmpty" {
		t.Errorf("a directory with a file: %v", err)
	}
	if _, err := inside.Delete(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if _, err := dir.Delete(t.Context(), nil); err != nil {
		t.Error(err)
	}
	// Not even a handle that shares everything lets it be pending: it is refused whole.
	s.OpenSMB("box", "f", SMBHandle{ID: "1", ShareRead: true, ShareWrite: true, ShareDelete: true})
	if _, err := f.Delete(t.Context(), nil); fileCode(err) != "SharingViolation" {
		t.Errorf("while it is open: %v", err)
	}
	s.CloseSMB("box", "f", "1")
	if _, err := f.Delete(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if _, err := f.Create(t.Context(), 1, nil); err != nil {
		t.Errorf("the name is not free at once: %v", err)
	}
}
