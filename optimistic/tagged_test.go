package optimistic_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestAConditionThatDoesNotHoldIsNoCrowd: the version that was read is still there after the refusal, so the loop ends instead
// of looking for other writers until its time is over.
func TestAConditionThatDoesNotHoldIsNoCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		client := s.BlockBlob("box", "n.json")
		optest.Put(t, client, `{"n":0}`)
		began := time.Now()
		s.Reset()
		res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, &optimistic.UpdateOptions{Conditions: optimistic.Conditions{IfTags: `"state" = 'ready'`}})
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		if !ok || conflict.Current != conflict.Base || res.Requests != 3 || s.Requests() != 3 {
			t.Errorf("%+v, %v in %d requests, want a conflict with the unchanged version in 3", res, err, s.Requests())
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
		tags := blobs.NewTags(client.BlobClient())
		if _, err := optimistic.Update(t.Context(), tags, func(_ context.Context, v *map[string]string) error {
			*v = map[string]string{"state": "ready"}
			return nil
		}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, &optimistic.UpdateOptions{Conditions: optimistic.Conditions{IfTags: `"state" = 'ready'`}}); err != nil {
			t.Errorf("the condition holds: %v", err)
		}
	})
}
