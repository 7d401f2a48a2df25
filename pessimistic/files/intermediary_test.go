package files

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pkg/aztest"
)

// A captive portal answers 200 in place of the service, which has not seen the request.
func TestASuccessOfAnIntermediaryIsNoWrite(t *testing.T) {
	portal := func(op string) aztest.Fault {
		return aztest.Fault{Kind: aztest.Page, Match: aztest.Op(op), Count: 1}
	}
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		s.SetFaults(portal("Put Range"))
		out, err := Update(t.Context(), f, to([]byte("new")), nil)
		if err != nil || string(stored(t, s, f)) != "new" {
			t.Errorf("Update = %+v, %v; the file has %q", out, err, stored(t, s, f))
		}
		s.SetFaults(portal("Delete File"))
		if done, err := Delete(t.Context(), f, nil); err != nil || done.How != DeletedByUs || done.Ambiguous != 1 {
			t.Errorf("Delete = %+v, %v", done, err)
		}
	})
}
