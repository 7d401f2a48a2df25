package settings

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// lost loses the response to the first request of an operation, which the service carries out.
func lost(s *aztest.Service, op string) {
	s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op(op), Count: 1})
	s.Reset()
}

// transporter makes a function a policy.Transporter.
type transporter func(*http.Request) (*http.Response, error)

func (f transporter) Do(r *http.Request) (*http.Response, error) { return f(r) }

func TestACreatedQueueExistsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		orders := s.QueueService().NewQueueClient("orders") // s.Queue would create it
		team := &CreateQueueOptions{Metadata: map[string]string{"team": "billing"}}
		r, err := CreateQueue(t.Context(), orders, team)
		if err != nil || !r.Created || !r.Changed || r.Requests != 1 || s.Requests() != 1 {
			t.Errorf("%+v, %v, %d requests", r, err, s.Requests())
		}
		for name, opts := range map[string]*CreateQueueOptions{"same metadata": team, "none": nil} {
			s.Reset()
			r, err := CreateQueue(t.Context(), orders, opts)
			if !errors.Is(err, optimistic.ErrExists) || r.Created || r.Changed || s.Requests() != 1 {
				t.Errorf("%s: %+v, %v, %d requests, want ErrExists", name, r, err, s.Requests())
			}
		}
	})
}

func TestAQueueExistsAfterALostResponseToItsCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		lost(s, "Create Queue")
		r, err := CreateQueue(t.Context(), s.QueueService().NewQueueClient("orders"), nil)
		if err != nil || r.Created || r.Ambiguous != 1 || r.Resolved != 0 || r.Requests != 2 || s.Requests() != 2 {
			t.Errorf("%+v, %v, %d requests, want success, and nothing about who created it", r, err, s.Requests())
		}
	})
}

func TestADeletionWhoseResponseIsLostHasItsEffect(t *testing.T) {
	for op, do := range map[string]func(context.Context, *aztest.Service) (optimistic.Result, error){
		"Delete Queue": func(ctx context.Context, s *aztest.Service) (optimistic.Result, error) {
			return DeleteQueue(ctx, s.Queue("orders"), nil)
		},
		"Clear Messages": func(ctx context.Context, s *aztest.Service) (optimistic.Result, error) {
			return ClearQueue(ctx, s.Queue("orders"), nil)
		},
		"Delete Container": func(ctx context.Context, s *aztest.Service) (optimistic.Result, error) {
			return DeleteContainer(ctx, s.Container("box"), nil)
		},
	} {
		for _, fault := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(nil)
				s.BlockBlob("box", "any") // makes the container
				if _, err := s.Queue("orders").EnqueueMessage(t.Context(), "m", nil); err != nil {
					t.Fatal(err)
				}
				s.Reset()
				want := 1
				if fault {
					lost(s, op)
					want = 2
				}
				r, err := do(t.Context(), s)
				if err != nil || !r.Changed || r.Ambiguous != want-1 || r.Requests != want || s.Requests() != want {
					t.Errorf("%s, lost %v: %+v, %v, %d requests, want %d", op, fault, r, err, s.Requests(), want)
				}
				if p, err := s.Queue("orders").GetProperties(t.Context(), nil); op == "Clear Messages" && (err != nil || *p.ApproximateMessagesCount != 0) {
					t.Errorf("the queue holds %+v, %v", p.ApproximateMessagesCount, err)
				}
			})
		}
	}
}

func TestAConditionalDeletionWhoseResponseIsLostIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		s.BlockBlob("box", "any")
		lost(s, "Delete Container")
		_, err := DeleteContainer(t.Context(), s.Container("box"), &DeleteContainerOptions{Conditions: optimistic.Conditions{IfUnmodifiedSince: time.Now().Add(time.Hour)}})
		unknown, ok := errors.AsType[*optimistic.UnknownError](err)
		if !ok || unknown.Resource != "box" || s.Requests() != 2 {
			t.Fatalf("%v, %d requests, want it unknown", err, s.Requests())
		}
		if again := unknown.Resolve(t.Context()); !errors.Is(again, optimistic.ErrOutcomeUnknown) || s.Requests() != 2 {
			t.Errorf("Resolve = %v, %d requests, want it unknown for ever", again, s.Requests())
		}
		if _, err := DeleteContainer(t.Context(), s.Container("box"), &DeleteContainerOptions{Conditions: optimistic.Conditions{IfMatch: "x"}}); err == nil || s.Requests() != 2 {
			t.Errorf("IfMatch: %v, %d requests, want it refused", err, s.Requests())
		}
	})
}

func TestDeletingAMissingResourceIsNotFound(t *testing.T) {
	s := aztest.New(nil)
	for name, do := range map[string]func() (optimistic.Result, error){
		"queue": func() (optimistic.Result, error) {
			return DeleteQueue(t.Context(), s.QueueService().NewQueueClient("none"), nil)
		},
		"container": func() (optimistic.Result, error) { return DeleteContainer(t.Context(), s.Container("none"), nil) },
	} {
		if r, err := do(); !errors.Is(err, optimistic.ErrNotFound) || r.Changed {
			t.Errorf("%s: %+v, %v, want not found", name, r, err)
		}
	}
}

func TestACreatedContainerIsRecognizedByItsID(t *testing.T) {
	create := func(t *testing.T, s *aztest.Service) (optimistic.Result, error) {
		return CreateContainer(t.Context(), s.Container("jobs"), &CreateContainerOptions{Metadata: map[string]string{"team": "ops"}})
	}
	for _, fault := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := aztest.New(nil)
			requests := 1
			if fault {
				lost(s, "Create Container")
				requests = 2
			}
			r, err := create(t, s)
			if err != nil || !r.Created || !r.Changed || (r.ETag == "") != fault || r.Resolved != r.Ambiguous || r.Requests != requests || s.Requests() != requests {
				t.Errorf("lost %v: %+v, %v, %d requests, want %d", fault, r, err, s.Requests(), requests)
			}
			v, err := optimistic.Read(t.Context(), NewContainerMetadata(s.Container("jobs")), nil)
			if err != nil || v.Value["team"] != "ops" || len(v.Value) != 1 {
				t.Errorf("metadata %v, %v", v, err)
			}
			s.Reset()
			if r, err := create(t, s); !errors.Is(err, optimistic.ErrExists) || r.Created || r.Changed || s.Requests() != 1 {
				t.Errorf("again: %+v, %v, %d requests, want ErrExists", r, err, s.Requests())
			}
			bubble.Sleep(time.Minute)
			s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 500, Code: "InternalError", Match: aztest.Op("Create Container"), Count: 1})
			if r, err := create(t, s); !errors.Is(err, optimistic.ErrExists) || r.Created {
				t.Errorf("much later: %+v, %v, want ErrExists: it is older than the first request", r, err)
			}
		})
	}
}

func TestAChangedContainerProvesNothing(t *testing.T) {
	for name, after := range map[string]func(*testing.T, *aztest.Service){
		"metadata replaced": func(t *testing.T, s *aztest.Service) {
			if _, err := s.Container("jobs").SetMetadata(t.Context(), nil); err != nil {
				t.Error(err)
			}
		},
		"unreadable": func(_ *testing.T, s *aztest.Service) {
			s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationPermissionMismatch", Match: aztest.Op("Get Container Properties")})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := aztest.New(nil)
			lost(s, "Create Container")
			sent := 0
			wire := transporter(func(r *http.Request) (*http.Response, error) {
				resp, err := s.Do(r)
				if sent++; sent == 1 {
					after(t, s)
				}
				return resp, err
			})
			credential, err := container.NewSharedKeyCredential(aztest.Account, aztest.Key)
			if err != nil {
				t.Fatal(err)
			}
			client, err := container.NewClientWithSharedKeyCredential(s.BlobURL()+"/jobs", credential, &container.ClientOptions{ClientOptions: policy.ClientOptions{Transport: wire}})
			if err != nil {
				t.Fatal(err)
			}
			if r, err := CreateContainer(t.Context(), client, nil); !errors.Is(err, optimistic.ErrOutcomeUnknown) || r.Created {
				t.Errorf("%s: %+v, %v, want it unknown", name, r, err)
			}
		})
	}
}
