package appends

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"

	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestAnAppendKnowsWhereTheBlobEndsWithoutALength: the position comes from a range when Get Blob Properties has lost its
// Content-Length. A cut look at the end does not prove that the data is not there.
func TestAnAppendKnowsWhereTheBlobEndsWithoutALength(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.Rechunk, aztest.Truncate} {
		synctest.Test(t, func(t *testing.T) {
			s := aztest.New(nil)
			s.BlockBlob("box", "log")
			client := s.Container("box").NewAppendBlobClient("log")
			if _, err := client.Create(t.Context(), &appendblob.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				s.SetFaults(
					aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Append Block"), Count: 1},
					aztest.Fault{Kind: kind, Match: aztest.Op("Get Blob Properties")},
					aztest.Fault{Kind: kind, Match: aztest.Op("Get Blob"), Skip: i, Count: 1},
				)
				if _, err := Append(t.Context(), client, []byte(fmt.Sprintf("line %d\n", i)), &AppendOptions{Unique: true}); err != nil {
					t.Fatalf("%s, append %d: %v\n%v", kind, i, err, s.Log())
				}
			}
			s.SetFaults()
			if got := optest.Get(t, s.BlockBlob("box", "log")); got != "line 0\nline 1\nline 2\n" {
				t.Errorf("%s: the blob holds %q", kind, got)
			}
		})
	}
}
