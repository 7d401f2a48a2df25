package blobs

import (
	"testing"
	"time"

	"github.com/azconc/azconc/optimistic/internal/anyblob"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/azerr"
)

func TestOnlyLegalPairsOfConditionsPass(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	all := []struct {
		name string
		set  func(*optimistic.Conditions)
	}{
		{"If-Match", func(c *optimistic.Conditions) { c.IfMatch = `"0x1"` }},
		{"If-None-Match", func(c *optimistic.Conditions) { c.IfNoneMatch = `"0x1"` }},
		{"If-Modified-Since", func(c *optimistic.Conditions) { c.IfModifiedSince = at }},
		{"If-Unmodified-Since", func(c *optimistic.Conditions) { c.IfUnmodifiedSince = at }},
	}
	s, client := optest.Quiet(t, `{"n":1}`)
	for mask := range 16 {
		var c optimistic.Conditions
		var names []string
		for i, one := range all {
			if mask&(1<<i) != 0 {
				one.set(&c)
				names = append(names, one.name)
			}
		}
		refused := c.Validate() != nil
		// The in-memory service judges the same combination by itself.
		_, err := client.Upload(t.Context(), optest.Body("x"), &blockblob.UploadOptions{AccessConditions: anyblob.AccessConditions(c)})
		if byService := azerr.Has(err, "MultipleConditionHeadersNotSupported"); refused != byService {
			t.Errorf("%v: refused here %t, by the service %t", names, refused, byService)
		}
	}
	_ = s
}
