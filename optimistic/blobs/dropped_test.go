package blobs

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/azconc/azconc/optimistic/pages"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestAResponseWithoutAHeaderThatIsAlwaysSentIsNone: an intermediary drops one header of one response. Every call finds
// out what it did not learn, by reading again or by a look.
func TestAResponseWithoutAHeaderThatIsAlwaysSentIsNone(t *testing.T) {
	for name, tt := range map[string]struct {
		op, drop string
		call     func(ctx context.Context, s *aztest.Service) (ok bool, err error)
	}{
		"download": {"Get Blob", "ETag", func(ctx context.Context, s *aztest.Service) (bool, error) {
			var got bytes.Buffer
			r, err := Download(ctx, s.Container("box").NewBlobClient("n.json"), &got, nil)
			return got.String() == "x" && r.ETag != "", err
		}},
		"blocks": {"Get Block List", "ETag", func(ctx context.Context, s *aztest.Service) (bool, error) {
			_, now, err := ListBlocks(ctx, s.BlockBlob("box", "n.json"), blockblob.BlockListTypeAll, nil)
			return now.Exists && now.ETag != "", err
		}},
		"snapshot": {"Snapshot Blob", "x-ms-snapshot", func(ctx context.Context, s *aztest.Service) (bool, error) {
			r, err := Snapshot(ctx, s.Container("box"), "n.json", nil)
			return r.Snapshot != "" && len(r.Twins) == 0, err
		}},
		"copy, its id": {"Copy Blob", "x-ms-copy-id", func(ctx context.Context, s *aztest.Service) (bool, error) {
			r, err := Copy(ctx, s.Container("box").NewBlobClient("to"), s.Container("box").NewBlobClient("n.json"), nil)
			return r.CopyID != "" && r.Status != "", err
		}},
		"copy, its status": {"Copy Blob", "x-ms-copy-status", func(ctx context.Context, s *aztest.Service) (bool, error) {
			r, err := Copy(ctx, s.Container("box").NewBlobClient("to"), s.Container("box").NewBlobClient("n.json"), &CopyOptions{Wait: true})
			return r.Status == blob.CopyStatusTypeSuccess, err
		}},
		"raised number": {"Set Blob Properties", "x-ms-blob-sequence-number", func(ctx context.Context, s *aztest.Service) (bool, error) {
			n, _, err := pages.RaiseSequenceNumber(ctx, optest.PagesOf(s), 3, nil)
			return n == 5, err
		}},
		"pages of a sequence": {"Get Blob", "x-ms-blob-sequence-number", func(ctx context.Context, s *aztest.Service) (bool, error) {
			p := pages.NewRange(optest.PagesOf(s), 0, 512)
			p.Sequence.IfAtMost = new(int64(4))
			_, err := optimistic.Read(ctx, p, nil)
			return errors.Is(err, optimistic.ErrConflict), nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := optest.Quiet(t, "x")
				client := optest.MakePages(t, s, 512)
				if _, _, err := pages.RaiseSequenceNumber(t.Context(), client, 5, nil); err != nil {
					t.Fatal(err)
				}
				s.Reset()
				s.SetFaults(aztest.Fault{Kind: aztest.Rechunk, Match: aztest.Op(tt.op), Drop: []string{tt.drop}, Count: 1})
				if ok, err := tt.call(t.Context(), s); err != nil || !ok {
					t.Errorf("%v, %v\n%v", ok, err, s.Log())
				}
				if s.Log()[0].Fault != aztest.Rechunk && s.Log()[1].Fault != aztest.Rechunk {
					t.Errorf("nothing was dropped: %v", s.Log())
				}
			})
		})
	}
}

// TestADownloadWithoutAnETagIsNotUnmodified: the SDK's response to 304 has no ETag either.
func TestADownloadWithoutAnETagIsNotUnmodified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, "x")
		s.SetFaults(aztest.Fault{Kind: aztest.Rechunk, Drop: []string{"ETag"}})
		var got bytes.Buffer
		_, err := Download(t.Context(), client.BlobClient(), &got, nil)
		if err == nil || errors.Is(err, ErrNotModified) || got.Len() > 0 {
			t.Errorf("%q, %v", got.String(), err)
		}
		want := "get box/n.json: the response has no ETag, which the service always sends: a proxy may have dropped it"
		if err != nil && !strings.HasPrefix(err.Error(), want+" (the last of ") {
			t.Errorf("err = %v\nwant  %s", err, want)
		}
	})
}
