package appends

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestAnAppendNeedsNoRightToRead: it asked where the blob ends, got 403, and appended nothing.
func TestAnAppendNeedsNoRightToRead(t *testing.T) {
	for _, fault := range []aztest.FaultKind{"", aztest.LoseAnswer, aztest.LoseRequest} {
		synctest.Test(t, func(t *testing.T) {
			s := aztest.New(&aztest.Options{VerifySignatures: true})
			s.BlockBlob("box", "any") // makes the container
			owner := s.Container("box").NewAppendBlobClient("log")
			url, err := owner.BlobClient().GetSASURL(sas.BlobPermissions{Add: true, Create: true}, time.Now().Add(time.Hour), nil)
			if err != nil {
				t.Fatal(err)
			}
			client, err := appendblob.NewClientWithNoCredential(url, &appendblob.ClientOptions{ClientOptions: s.ClientOptions()})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Append(t.Context(), client, []byte("zero"), nil); !errors.Is(err, optimistic.ErrNotFound) {
				t.Errorf("no blob: %v", err)
			}
			first, err := Append(t.Context(), client, []byte("one"), &AppendOptions{Create: true})
			if err != nil || first.Offset != 0 || first.End != 3 || !first.Created || first.Requests != 3 {
				t.Errorf("%+v, %v", first, err)
			}
			if fault != "" {
				s.SetFaults(aztest.Fault{Kind: fault, Match: aztest.Op("Append Block"), Count: 1})
			}
			second, err := Append(t.Context(), client, []byte("two!"), nil)
			if fault == "" && (err != nil || second.Offset != 3 || second.End != 7 || second.Requests != 2) {
				t.Errorf("%+v, %v", second, err)
			}
			if fault != "" && (!errors.Is(err, optimistic.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "the right to read it (r in a SAS)")) {
				t.Errorf("%s: %+v, %v", fault, second, err)
			}
			if pinned, err := Append(t.Context(), client, []byte("3"), &AppendOptions{Position: 7}); fault != aztest.LoseRequest && (err != nil || pinned.Requests != 1) {
				t.Errorf("%+v, %v", pinned, err)
			}
			if full, err := Append(t.Context(), client, []byte("4"), &AppendOptions{MaxSize: 3}); !errors.Is(err, ErrFull) {
				t.Errorf("%+v, %v", full, err)
			}
		})
	}
}
