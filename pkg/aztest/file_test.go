package aztest

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	filelease "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
)

func fileCode(err error) string {
	if r, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return r.ErrorCode
	}
	return ""
}

func newFile(t *testing.T) (*Service, *file.Client) {
	t.Helper()
	s := New(nil)
	f := s.File("box", "f")
	if _, err := f.Create(t.Context(), 6, nil); err != nil {
		t.Fatal(err)
	}
	return s, f
}

func TestAFileIsWrittenByRangesAndRead(t *testing.T) {
	_, f := newFile(t)
	if _, err := f.UploadRange(t.Context(), 3, streaming.NopCloser(bytes.NewReader([]byte("abc"))), nil); err != nil {
		t.Fatal(err)
	}
	resp, err := f.DownloadStream(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(resp.Body); err != nil || string(data) != "\x00\x00\x00abc" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := f.UploadRange(t.Context(), 4, streaming.NopCloser(bytes.NewReader([]byte("abc"))), nil); fileCode(err) != "InvalidRange" {
		t.Errorf("a range beyond the end: %v", err)
	}
}

func TestWhatAnSMBClientDoesNotShareOthersCannotHave(t *testing.T) {
	s, f := newFile(t)
	s.OpenSMB("box", "f", SMBHandle{ID: "1", ClientName: "desk", Write: true, ShareRead: true})
	if _, err := f.DownloadStream(t.Context(), nil); err != nil {
		t.Errorf("reading is shared: %v", err)
	}
	if _, err := f.GetProperties(t.Context(), nil); err != nil {
		t.Errorf("properties need nothing: %v", err)
	}
	_, write := f.SetMetadata(t.Context(), nil)
	_, remove := f.Delete(t.Context(), nil)
	l, _ := filelease.NewFileClient(f, nil)
	_, acquire := l.Acquire(t.Context(), nil)
	for _, err := range []error{write, remove, acquire} {
		if fileCode(err) != "SharingViolation" {
			t.Errorf("%v, want SharingViolation", err)
		}
	}
	s.MarkDeletedSMB("box", "f", true)
	if _, err := f.Delete(t.Context(), nil); fileCode(err) != "SMBDeletePending" {
		t.Errorf("pending: %v", err)
	}
	handles, err := f.ListHandles(t.Context(), nil)
	if err != nil || len(handles.Handles) != 1 || *handles.Handles[0].ClientName != "desk" {
		t.Errorf("handles %v, %v", handles.Handles, err)
	}
	s.CloseSMB("box", "f", "1")
	if _, err := f.GetProperties(t.Context(), nil); fileCode(err) != "ResourceNotFound" {
		t.Errorf("after the last handle: %v", err)
	}
}

func TestSharesAreListedByPrefixInPages(t *testing.T) {
	s := New(nil)
	for _, name := range []string{"logs-b", "data", "logs-a", "logs-c"} {
		s.Share(name)
	}
	if _, err := s.Share("logs-c").Delete(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	credential, err := service.NewSharedKeyCredential(Account, Key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := service.NewClientWithSharedKeyCredential(s.FileURL(), credential, &service.ClientOptions{ClientOptions: s.ClientOptions()})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	one, logs := int32(1), "logs-"
	for pager := client.NewListSharesPager(&service.ListSharesOptions{Prefix: &logs, MaxResults: &one}); pager.More(); {
		page, err := pager.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range page.Shares {
			names = append(names, *one.Name)
		}
	}
	if got := strings.Join(names, " "); got != "logs-a logs-b" {
		t.Errorf("listed: %q", got)
	}
	if last := s.Log()[s.Requests()-1]; last.Op != "List Shares" {
		t.Errorf("the request is logged as %s", last.Op)
	}
}
