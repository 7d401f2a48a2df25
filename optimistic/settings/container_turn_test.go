package settings

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// containerAt returns a client of the container box under another address of the service.
func containerAt(t *testing.T, s *aztest.Service, endpoint string) *container.Client {
	t.Helper()
	credential, err := azblob.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(endpoint+aztest.Account+"/box", credential, &container.ClientOptions{ClientOptions: s.ClientOptions()})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestAForeignWriteBeforeATurnIsAConflict: azconc finds another version when it has its turn, and sends nothing. There is nothing to
// doubt then, on any path; it was doubted on each, so that a plain program beside azconc made an update "unknown".
func TestAForeignWriteBeforeATurnIsAConflict(t *testing.T) {
	for _, endpoint := range []string{"http://127.0.0.1:10000/", "http://storage.internal:10000/"} {
		for _, confirm := range []optimistic.Confirm{optimistic.ConfirmByPath, optimistic.ConfirmAlways} {
			t.Run(fmt.Sprint(endpoint, confirm), func(t *testing.T) {
				s, client := box(t, nil)
				s.Reset()
				res, err := optimistic.Update(t.Context(), NewContainerMetadata(containerAt(t, s, endpoint)), func(ctx context.Context, m *map[string]string) error {
					if optimistic.EarlierRuns(ctx) == 0 {
						if _, err := client.SetMetadata(ctx, &container.SetMetadataOptions{Metadata: map[string]*string{"foreign": new("1")}}); err != nil {
							return err
						}
					}
					(*m)["mine"] = "1"
					return nil
				}, &optimistic.UpdateOptions{SendOptions: optimistic.SendOptions{ConfirmConflicts: confirm}})
				if err != nil || res.Conflicts != 1 || res.Foreign != 1 || res.Requests != 9 {
					t.Errorf("%+v, %v:\n%v", res, err, s.Log())
				}
				v, err := optimistic.Read(t.Context(), NewContainerMetadata(client), nil)
				if err != nil || v.Value["foreign"] != "1" || v.Value["mine"] != "1" {
					t.Errorf("read %+v, %v", v, err)
				}
			})
		}
	}
}

// TestAContainerThatIsGoneBeforeATurnIsNotWritten: what refuses the turn says nothing about the write, which was not sent.
func TestAContainerThatIsGoneBeforeATurnIsNotWritten(t *testing.T) {
	s, client := box(t, nil)
	res, err := optimistic.Update(t.Context(), NewContainerMetadata(containerAt(t, s, "http://storage.internal:10000/")), func(ctx context.Context, m *map[string]string) error {
		(*m)["mine"] = "1"
		_, err := client.Delete(ctx, nil)
		return err
	}, nil)
	if !errors.Is(err, optimistic.ErrNotFound) || errors.Is(err, optimistic.ErrOutcomeUnknown) || res.Ambiguous != 0 {
		t.Errorf("%+v, %v:\n%v", res, err, s.Log())
	}
}

// TestATurnThatCannotBeHadIsNoDoubt: a write that waits for its turn, or compares, and fails there was not sent.
func TestATurnThatCannotBeHadIsNoDoubt(t *testing.T) {
	for _, op := range []string{"Acquire Container Lease", "Get Container Properties"} {
		for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.LoseRequest, aztest.Hang, aztest.FailAfterCommit, aztest.Throttle, aztest.Refuse, aztest.Page} {
			synctest.Test(t, func(t *testing.T) {
				s, client := box(t, nil)
				base, err := optimistic.Read(t.Context(), NewContainerMetadata(client), nil)
				if err != nil {
					t.Fatal(err)
				}
				s.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op(op)})
				res, err := optimistic.Replace(t.Context(), NewContainerMetadata(client), base, map[string]string{"mine": "1"}, nil)
				if err == nil || errors.Is(err, optimistic.ErrOutcomeUnknown) || res.Ambiguous != 0 {
					t.Errorf("%s, %s: %+v, %v", op, kind, res, err)
				}
				for _, r := range s.Log() {
					if r.Op == "Set Container Metadata" {
						t.Errorf("%s, %s: it was written", op, kind)
					}
				}
			})
		}
	}
}

// TestAShortOutageAtTheEndOfATurnDoesNotLeaveIt: three tries within 0.15 s did, and everybody waited for 15 s.
func TestAShortOutageAtTheEndOfATurnDoesNotLeaveIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := box(t, nil)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Op("Release Container Lease")})
		time.AfterFunc(time.Second, func() { s.SetFaults() })
		if _, err := optimistic.Update(t.Context(), NewContainerMetadata(client), optest.SetMeta("mine", "1"), nil); err != nil {
			t.Error(err)
		}
		if state := leaseState(t, client); state != lease.StateTypeAvailable {
			t.Errorf("the container is %s", state)
		}
	})
}
