package samba

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
)

// overANetwork returns a client of a file that reaches the bridge through a socket.
func overANetwork(t *testing.T, b *Bridge, name string) *file.Client {
	t.Helper()
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	f, err := file.NewClientWithNoCredential(server.URL+"/devstoreaccount1/"+ShareName+"/"+name, &file.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: server.Client(), Retry: policy.RetryOptions{MaxRetries: -1}}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestAFileIsMadeWrittenReadAndDeleted(t *testing.T) {
	s := Start(t)
	b := NewBridge(t, s)
	for name, f := range map[string]*file.Client{"direct": b.File("direct"), "network": overANetwork(t, b, "network")} {
		t.Run(name, func(t *testing.T) {
			value := "v"
			_, err := f.GetProperties(t.Context(), nil)
			wantCode(t, "nothing is there", err, http.StatusNotFound, "ResourceNotFound")
			made, err := f.Create(t.Context(), 9, &file.CreateOptions{Metadata: map[string]*string{"name": &value}})
			if err != nil {
				t.Fatal(err)
			}
			written, err := f.UploadRange(t.Context(), 2, streaming.NopCloser(bytes.NewReader([]byte(content))), nil)
			if err != nil {
				t.Fatal(err)
			}
			if *made.ETag == *written.ETag {
				t.Errorf("the write has left the ETag at %s", *made.ETag)
			}
			_, err = f.UploadRange(t.Context(), 9, streaming.NopCloser(bytes.NewReader([]byte(content))), nil)
			wantCode(t, "a write behind its end", err, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
			_, err = f.Resize(t.Context(), 7, nil)
			wantOK(t, "resize", err)
			if got, want := contentOf(t, f), "\x00\x00"+content; got != want {
				t.Errorf("it has %q in it, want %q", got, want)
			}
			if data, err := os.ReadFile(filepath.Join(s.Dir, name)); err != nil || string(data) != "\x00\x00"+content {
				t.Errorf("Samba's file has %q in it, %v", data, err)
			}
			seen, err := f.GetProperties(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if n, m := *seen.ContentLength, seen.Metadata; n != 7 || len(m) != 1 {
				t.Errorf("%d bytes, metadata %v", n, m)
			}
			_, err = f.Delete(t.Context(), nil)
			wantOK(t, "delete", err)
			_, err = f.Delete(t.Context(), nil)
			wantCode(t, "delete again", err, http.StatusNotFound, "ResourceNotFound")
		})
	}
}
