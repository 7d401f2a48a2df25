package optimistic_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestAPanicOnAStaleValueIsNotRaised when the rerun on the current value succeeded.
func TestAPanicOnAStaleValueIsNotRaised(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":0}`)
	d := open(t, s, nil)
	if _, err := d.Update(t.Context(), optest.Increment); err != nil {
		t.Fatal(err)
	}
	if _, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json")), optest.Increment, nil); err != nil {
		t.Fatal(err)
	}
	_, err := d.Update(t.Context(), func(_ context.Context, c *optest.Counter) error {
		if c.N == 1 {
			panic("stale")
		}
		c.N++
		return nil
	})
	if got := optest.Count(t, client); err != nil || got != 3 {
		t.Errorf("Update = %v, n = %d", err, got)
	}
}

// TestADocumentKeepsNoValueOfAWriteWhoseResponseWasLost: the version found after it may be a later one, of a writer
// outside azconc that keeps the metadata. The next change must be made on what that writer has written.
func TestADocumentKeepsNoValueOfAWriteWhoseResponseWasLost(t *testing.T) {
	s, foreign := optest.Quiet(t, `{"n":0}`)
	lose := false
	credential, err := blob.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := blockblob.NewClientWithSharedKeyCredential(s.BlobURL()+"/box/n.json", credential, &blockblob.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: transporter(func(r *http.Request) (*http.Response, error) {
			resp, err := s.Do(r)
			if !lose || r.Method != http.MethodPut || err != nil {
				return resp, err
			}
			lose = false
			resp.Body.Close()
			props, err := foreign.GetProperties(t.Context(), nil)
			if err != nil {
				return nil, err
			}
			if _, err := foreign.Upload(t.Context(), optest.Body(`{"n":100}`), &blockblob.UploadOptions{Metadata: props.Metadata}); err != nil {
				return nil, err
			}
			return nil, io.ErrUnexpectedEOF
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := optimistic.NewDocument(blobs.NewJSON[optest.Counter](client), nil)
	if err != nil {
		t.Fatal(err)
	}
	lose = true
	if res, err := d.Update(t.Context(), optest.Increment); err != nil || res.Resolved != 1 || res.ETag != "" {
		t.Fatalf("Update = %+v, %v, want a lost response that is resolved, and no version", res, err)
	}
	s.Reset()
	res, err := d.Update(t.Context(), optest.Increment)
	if err != nil {
		t.Fatal(err)
	}
	optest.Requests(t, s, res, 2) // read and written
	if got := optest.Count(t, foreign); got != 101 {
		t.Errorf("n = %d, want 101: the foreign writer's 100 and one more", got)
	}
}

type transporter func(*http.Request) (*http.Response, error)

func (f transporter) Do(r *http.Request) (*http.Response, error) { return f(r) }
