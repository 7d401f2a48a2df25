package blobs

import (
	"context"
	"crypto/md5"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func setType(_ context.Context, h *HTTPHeaders) error {
	h.ContentType = "text/csv"
	return nil
}

func TestUnchangedHeadersSurvive(t *testing.T) {
	s, client := optest.Quiet(t, "")
	sum := md5.Sum([]byte("a;b"))
	if _, err := client.Upload(t.Context(), optest.Body("a;b"), &blockblob.UploadOptions{
		HTTPHeaders: &blob.HTTPHeaders{
			BlobCacheControl: new("no-cache"), BlobContentDisposition: new("attachment"), BlobContentEncoding: new("identity"),
			BlobContentLanguage: new("de"), BlobContentType: new("text/plain"), BlobContentMD5: sum[:],
		},
		Metadata: map[string]*string{"owner": new("team a")}, Tags: map[string]string{"state": "ready"},
	}); err != nil {
		t.Fatal(err)
	}
	base := optest.ETagOf(t, client)
	s.Reset()
	res, err := optimistic.Update(t.Context(), NewHeaders(client.BlobClient()), setType, nil)
	if err != nil || !res.Changed || res.BaseETag != base {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	optest.Requests(t, s, res, 2)
	if h := s.Log()[1].Header; h.Get("If-Match") != string(base) || h.Get("X-Ms-Blob-Content-Type") != "text/csv" {
		t.Errorf("sent %v", h)
	}
	p := optest.PropertiesOf(t, client.BlobClient())
	if *p.ContentType != "text/csv" || *p.CacheControl != "no-cache" || *p.ContentDisposition != "attachment" || *p.ContentEncoding != "identity" ||
		*p.ContentLanguage != "de" || string(p.ContentMD5) != string(sum[:]) || *p.Metadata["Owner"] != "team a" || *p.TagCount != 1 {
		t.Errorf("the blob has %+v", p)
	}
}

// TestTheSameHeadersAreNoProof: after a lost response the blob has the headers that were sent, but another writer may
// have set them. A rival's change in the lineage proves that ours were not set.
func TestTheSameHeadersAreNoProof(t *testing.T) {
	for name, fault := range map[string]aztest.FaultKind{"landed": aztest.LoseAnswer, "did not land": aztest.LoseRequest} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, "x")
				s.SetFaults(aztest.Fault{Kind: fault, Match: aztest.Writes, Count: 1})
				go func() {
					bubble.Sleep(time.Microsecond)
					if _, err := client.SetHTTPHeaders(context.Background(), blob.HTTPHeaders{BlobContentType: new("text/csv")}, nil); err != nil {
						t.Error(err)
					}
				}()
				_, err := optimistic.Update(t.Context(), NewHeaders(client.BlobClient()), setType, nil)
				if !errors.Is(err, optimistic.ErrOutcomeUnknown) {
					t.Errorf("err = %v, want unknown", err)
				}
			})
		})
	}
}

func TestARivalInTheLineageProvesThatHeadersWereNotSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":0}`)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Writes, Count: 1})
		go func() {
			bubble.Sleep(time.Microsecond)
			if _, err := optimistic.Update(context.Background(), NewJSON[optest.Counter](client), optest.Increment, nil); err != nil {
				t.Error(err)
			}
		}()
		res, err := optimistic.Update(t.Context(), NewHeaders(client.BlobClient()), setType, nil)
		if err != nil || res.Ambiguous != 1 || res.Resolved != 1 || res.Conflicts != 1 || res.Attempts != 2 {
			t.Errorf("Update = %+v, %v, want it run again", res, err)
		}
	})
}

// TestAnOldLineageProvesNothingAboutHeaders: writes of headers leave no entry, so an unchanged lineage does not prove
// that no headers were set.
func TestAnOldLineageProvesNothingAboutHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":0}`)
		for range 3 {
			if _, err := optimistic.Update(t.Context(), NewJSON[optest.Counter](client), optest.Increment, nil); err != nil {
				t.Fatal(err)
			}
		}
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		_, err := optimistic.Update(t.Context(), NewHeaders(client.BlobClient()), setType, nil)
		unknown, ok := errors.AsType[*optimistic.UnknownError](err)
		if !ok {
			t.Fatalf("err = %v, want unknown", err)
		}
		if err := unknown.Resolve(t.Context()); !errors.Is(err, optimistic.ErrOutcomeUnknown) {
			t.Errorf("Resolve = %v", err)
		}
	})
}

func TestHeadersRefuseInvalidChanges(t *testing.T) {
	s, client := optest.Quiet(t, "x")
	target := NewHeaders(client.BlobClient())
	set := func(h HTTPHeaders) func(context.Context, *HTTPHeaders) error {
		return func(_ context.Context, v *HTTPHeaders) error { *v = h; return nil }
	}
	for _, tt := range []struct {
		h    HTTPHeaders
		o    *optimistic.UpdateOptions
		want string
	}{
		{HTTPHeaders{ContentType: "a"}, &optimistic.UpdateOptions{OperationID: "op"}, "OperationID"},
		{HTTPHeaders{ContentType: "a\r\nx-ms-meta-b: c"}, nil, "not allowed in a header"},
		{HTTPHeaders{ContentMD5: "?"}, nil, "not base64"},
	} {
		if _, err := optimistic.Update(t.Context(), target, set(tt.h), tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: err = %v, want %q", tt.h, err, tt.want)
		}
	}
	if _, err := optimistic.Create(t.Context(), NewHeaders(s.BlockBlob("box", "none").BlobClient()), HTTPHeaders{ContentType: "a"}, nil); err == nil {
		t.Error("headers were created without a blob")
	}
	if _, err := optimistic.Delete(t.Context(), target, optimistic.State{}, nil); err == nil {
		t.Error("headers were deleted")
	}
	if _, err := optimistic.Update(t.Context(), NewHeaders(s.BlockBlob("box", "none").BlobClient()), setType, nil); !errors.Is(err, optimistic.ErrNotFound) {
		t.Errorf("err = %v, want not found", err)
	}
	for _, r := range s.Log() {
		if aztest.Writes(&r) {
			t.Errorf("sent %v", r)
		}
	}
}

func TestADocumentOfHeadersCostsOneRequest(t *testing.T) {
	s, client := optest.Quiet(t, "x")
	d, err := optimistic.NewDocument(NewHeaders(client.BlobClient()), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, language := range []string{"de", "en", "fr"} {
		s.Reset()
		res, err := d.Update(t.Context(), func(_ context.Context, h *HTTPHeaders) error { h.ContentLanguage = language; return nil })
		want := 1
		if i == 0 {
			want = 2
		}
		if err != nil || res.Requests != want {
			t.Errorf("Update = %+v, %v, want %d requests", res, err, want)
		}
	}
	if p := optest.PropertiesOf(t, client.BlobClient()); *p.ContentLanguage != "fr" || *p.ContentType == "" {
		t.Errorf("the blob has %+v", p)
	}
}
