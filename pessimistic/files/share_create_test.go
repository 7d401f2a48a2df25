package files

import (
	"errors"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/ptr"
)

func TestASharesCreationAndDeletionTakeARequestEach(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, _ *file.Client) {
		client := s.FileService().NewShareClient("new")
		r, err := CreateShare(t.Context(), client, &CreateShareOptions{Metadata: map[string]string{"team": "billing"}})
		if err != nil || r.ETag == "" || r.Requests != 1 || r.Ambiguous != 0 {
			t.Errorf("CreateShare = %+v, %v", r, err)
		}
		if p, err := client.GetProperties(t.Context(), nil); err != nil || ptr.Value(p.ETag) != r.ETag || len(p.Metadata) != 1 {
			t.Errorf("the share is %+v, %v; created at %s", p, err, r.ETag)
		}
		if r, err = CreateShare(t.Context(), client, nil); !errors.Is(err, azerr.ErrExists) || r.Requests != 1 {
			t.Errorf("a second creation = %+v, %v", r, err)
		}
		if r, err = DeleteShare(t.Context(), client, nil); err != nil || r.Requests != 1 {
			t.Errorf("DeleteShare = %+v, %v", r, err)
		}
		if r, err = DeleteShare(t.Context(), s.FileService().NewShareClient("missing"), nil); !errors.Is(err, pessimistic.ErrNotFound) || r.Requests != 1 {
			t.Errorf("the deletion of a missing share = %+v, %v", r, err)
		}
	})
}

func TestALeasedShareIsDeletedUnderItsLeaseOnly(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, _ *file.Client) {
		client := s.Share("box")
		l, err := pessimistic.Acquire(t.Context(), NewShare(client), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Release(t.Context()) }()
		if _, err := DeleteShare(t.Context(), client, nil); !errors.Is(err, pessimistic.ErrHeld) {
			t.Errorf("without its id: %v", err)
		}
		if _, err := DeleteShare(t.Context(), client, &DeleteShareOptions{LeaseID: "00000000-0000-4000-8000-00000000000a"}); !errors.Is(err, pessimistic.ErrLost) {
			t.Errorf("with another id: %v", err)
		}
		if _, err := DeleteShare(t.Context(), client, &DeleteShareOptions{LeaseID: l.ID()}); err != nil {
			t.Errorf("with its id: %v", err)
		}
	})
}

// A share does not record who created it. The service accepts the deletion of a share that is being deleted.
func TestTheOutcomeOfAShareRequestIsUnknownAfterALostResponse(t *testing.T) {
	for kind, applied := range map[aztest.FaultKind]bool{aztest.LoseAnswer: true, aztest.FailAfterCommit: true, aztest.LoseRequest: false} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, _ *file.Client) {
			client := s.FileService().NewShareClient("new")
			for op, send := range map[string]func() (ShareResult, error){
				"Create Share": func() (ShareResult, error) { return CreateShare(t.Context(), client, nil) },
				"Delete Share": func() (ShareResult, error) {
					_, _ = client.Create(t.Context(), nil)
					return DeleteShare(t.Context(), client, nil)
				},
			} {
				client = s.FileService().NewShareClient(strings.ToLower(op[:6])) // of its own: the order is random
				s.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op(op), Count: 1})
				r, err := send()
				s.SetFaults()
				unknown := applied && op == "Create Share" // a share that is being deleted is deleted again
				if r.Ambiguous != 1 || errors.Is(err, pessimistic.ErrOutcomeUnknown) != unknown || !unknown && err != nil {
					t.Errorf("%v, %s: %+v, %v", kind, op, r, err)
				}
			}
		})
	}
}
