package aztest_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/pkg/aztest"
)

// TestWhatAnIntermediaryDoesToAnAnswer reads a blob in memory and through a socket.
func TestWhatAnIntermediaryDoesToAnAnswer(t *testing.T) {
	s := aztest.New(nil)
	inMemory := s.BlockBlob("box", "blob")
	server := httptest.NewServer(s.BlobHandler())
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	credential, err := blob.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	overSocket, err := blockblob.NewClientWithSharedKeyCredential(server.URL+"/"+aztest.Account+"/box/blob", credential,
		&blockblob.ClientOptions{ClientOptions: policy.ClientOptions{Transport: &http.Client{Transport: transport}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inMemory.Upload(t.Context(), content("0123456789"), nil); err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string]*blockblob.Client{"in memory": inMemory, "over a socket": overSocket} {
		for _, tt := range []struct {
			fault  aztest.Fault
			length int64 // -1: the answer has none
			body   string
			err    error // from reading the body
			ours   bool  // the answer has the service's headers
			md5    bool
		}{
			{aztest.Fault{}, 10, "0123456789", nil, true, true},
			{aztest.Fault{Kind: aztest.Rechunk}, -1, "0123456789", nil, true, true},
			{aztest.Fault{Kind: aztest.Rechunk, Drop: []string{"Content-MD5"}}, -1, "0123456789", nil, true, false},
			{aztest.Fault{Kind: aztest.Truncate}, -1, "01234", nil, true, true},
			{aztest.Fault{Kind: aztest.CutAnswer}, 10, "01234", io.ErrUnexpectedEOF, true, true},
			{aztest.Fault{Kind: aztest.Page}, 113, "<!DOCTYPE html>", nil, false, false},
			{aztest.Fault{Kind: aztest.PageAfterCommit, Status: 200}, 113, "<!DOCTYPE html>", nil, false, false},
		} {
			tt.fault.Count = 1
			if tt.fault.Kind != "" {
				s.SetFaults(tt.fault)
			}
			resp, err := client.DownloadStream(once(t.Context()), nil)
			if err != nil {
				t.Errorf("%s, %s: %v", name, tt.fault.Kind, err)
				continue
			}
			data, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			length := int64(-1)
			if resp.ContentLength != nil {
				length = *resp.ContentLength
			}
			if length != tt.length || !strings.HasPrefix(string(data), tt.body) || !errors.Is(err, tt.err) {
				t.Errorf("%s, %s: length %d, %q, %v", name, tt.fault.Kind, length, data, err)
			}
			if ours := resp.RequestID != nil && resp.ETag != nil; ours != tt.ours || (resp.ContentMD5 != nil) != tt.md5 {
				t.Errorf("%s, %s: request id %v, ETag %v, MD5 %v", name, tt.fault.Kind, resp.RequestID, resp.ETag, resp.ContentMD5)
			}
		}
	}
}
