package aztest_test

import (
	"context"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/azconc/azconc/pkg/aztest"
)

// held is a copy that stays pending.
type held struct {
	s        *aztest.Service
	from, to *blockblob.Client
	id       string
}

func hold(t *testing.T) held {
	t.Helper()
	s := aztest.New(nil)
	h := held{s: s, from: s.BlockBlob("box", "source"), to: s.BlockBlob("box", "destination")}
	for client, text := range map[*blockblob.Client]string{h.from: "source", h.to: "before"} {
		if _, err := client.Upload(t.Context(), content(text), nil); err != nil {
			t.Fatal(err)
		}
	}
	s.HoldCopies(true)
	resp, err := h.to.StartCopyFromURL(t.Context(), h.from.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if *resp.CopyStatus != blob.CopyStatusTypePending {
		t.Fatalf("the copy is %s", *resp.CopyStatus)
	}
	h.id = *resp.CopyID
	return h
}

func (h held) properties(t *testing.T) blob.GetPropertiesResponse {
	t.Helper()
	p, err := h.to.GetProperties(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestADestinationStandsStillWhileItsCopyIsPending(t *testing.T) {
	h := hold(t)
	if got := stored(t, h.to); got != "" {
		t.Errorf("the destination holds %q before the copy is done", got)
	}
	l := leased{t, h.to}
	for what, got := range map[string]string{
		"Put Blob": l.write(""),
		"Set Blob Metadata": func() string {
			_, err := h.to.SetMetadata(t.Context(), nil, nil)
			return code(err)
		}(),
		"Put Block": func() string {
			_, err := h.to.StageBlock(t.Context(), "YQ==", content("x"), nil)
			return code(err)
		}(),
		"Snapshot Blob": func() string {
			_, err := h.to.CreateSnapshot(t.Context(), nil)
			return code(err)
		}(),
		"Delete Blob": func() string {
			_, err := h.to.Delete(t.Context(), nil)
			return code(err)
		}(),
		"Copy Blob": func() string {
			_, err := h.to.StartCopyFromURL(t.Context(), h.from.URL(), nil)
			return code(err)
		}(),
		"Acquire Lease": l.acquire(mine, 15),
	} {
		expectCode(t, what, got, "PendingCopyOperation")
	}
}

func TestAnAbortedCopyLeavesAnEmptyBlob(t *testing.T) {
	h := hold(t)
	before := *h.properties(t).ETag
	_, err := h.to.AbortCopyFromURL(t.Context(), "11111111-1111-4111-8111-111111111111", nil)
	expectCode(t, "abort another copy", code(err), "CopyIdMismatch")
	if _, err := h.to.AbortCopyFromURL(t.Context(), h.id, nil); err != nil {
		t.Fatal(err)
	}
	p := h.properties(t)
	if *p.CopyStatus != blob.CopyStatusTypeAborted || *p.ContentLength != 0 || *p.ETag == before || *p.CopyID != h.id {
		t.Errorf("status %s, %d bytes", *p.CopyStatus, *p.ContentLength)
	}
	_, err = h.to.AbortCopyFromURL(t.Context(), h.id, nil)
	expectCode(t, "abort again", code(err), "NoPendingCopyOperation")
	expectCode(t, "write", leased{t, h.to}.write(""), "")
}

func TestAPendingCopyFinishes(t *testing.T) {
	h := hold(t)
	before := *h.properties(t).ETag
	h.s.HoldCopies(false)
	p := h.properties(t)
	if *p.CopyStatus != blob.CopyStatusTypeSuccess || stored(t, h.to) != "source" || *p.CopyProgress != "6/6" || p.CopyCompletionTime == nil {
		t.Errorf("status %s, content %q, progress %s", *p.CopyStatus, stored(t, h.to), *p.CopyProgress)
	}
	if *p.ETag == before {
		t.Error("the version is the one that the copy started with")
	}
}

func TestACopyFailsWhenItsSourceChanges(t *testing.T) {
	h := hold(t)
	if _, err := h.from.Upload(t.Context(), content("changed"), nil); err != nil {
		t.Fatal(err)
	}
	h.s.HoldCopies(false)
	p := h.properties(t)
	if *p.CopyStatus != blob.CopyStatusTypeFailed || *p.ContentLength != 0 || p.CopyStatusDescription == nil {
		t.Errorf("status %s, %d bytes", *p.CopyStatus, *p.ContentLength)
	}
}

// TestTheLeaseOfADestinationOutlastsTheCopy: Copy Blob takes no lease that ends, Copy Blob From URL, which is done at
// once, takes any.
func TestTheLeaseOfADestinationOutlastsTheCopy(t *testing.T) {
	s := aztest.New(nil)
	from, to := s.BlockBlob("box", "source"), leased{t, s.BlockBlob("box", "destination")}
	for _, client := range []*blockblob.Client{from, to.client} {
		if _, err := client.Upload(t.Context(), content("x"), nil); err != nil {
			t.Fatal(err)
		}
	}
	id := mine
	held := &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: &id}}
	start := func() string {
		_, err := to.client.StartCopyFromURL(t.Context(), from.URL(), &blob.StartCopyFromURLOptions{AccessConditions: held})
		return code(err)
	}
	expectCode(t, "acquire for a minute", to.acquire(mine, 60), "")
	expectCode(t, "Copy Blob", start(), "InfiniteLeaseDurationRequired")
	_, err := to.client.CopyFromURL(t.Context(), from.URL(), &blob.CopyFromURLOptions{BlobAccessConditions: held})
	expectCode(t, "Copy Blob From URL", code(err), "")
	expectCode(t, "acquire for ever", to.acquire(mine, -1), "")
	expectCode(t, "Copy Blob", start(), "")
}

func TestContentComesFromURLs(t *testing.T) {
	s := aztest.New(nil)
	from, to := s.BlockBlob("box", "source"), s.BlockBlob("box", "destination")
	kind := "text/plain"
	if _, err := from.Upload(t.Context(), content("0123456789"), &blockblob.UploadOptions{HTTPHeaders: &blob.HTTPHeaders{BlobContentType: &kind}}); err != nil {
		t.Fatal(err)
	}
	_, err := to.StageBlockFromURL(t.Context(), "YQ==", from.URL(), nil)
	expectCode(t, "from a URL that gives no right to read", code(err), "CannotVerifyCopySource")
	signed, err := from.GetSASURL(sas.BlobPermissions{Read: true}, time.Now().Add(time.Hour), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := to.UploadBlobFromURL(t.Context(), signed, nil); err != nil {
		t.Fatal(err)
	}
	p, err := to.GetProperties(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := stored(t, to); got != "0123456789" || *p.ContentType != kind {
		t.Errorf("the service holds %q, a %s", got, *p.ContentType)
	}
	if _, err := to.StageBlockFromURL(t.Context(), "YQ==", signed, &blockblob.StageBlockFromURLOptions{Range: blob.HTTPRange{Offset: 3, Count: 4}}); err != nil {
		t.Fatal(err)
	}
	if _, err := to.CommitBlockList(t.Context(), []string{"YQ=="}, nil); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, to); got != "3456" {
		t.Errorf("the service holds %q, want a range of the source", got)
	}
}
