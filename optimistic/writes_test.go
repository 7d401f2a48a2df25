package optimistic_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// writes are the single writes of this package. Each returns its error; applied counts its effect.
var writes = []struct {
	name string
	run  func(ctx context.Context, s *aztest.Service) (optimistic.Result, error)
	// applied counts the effect afterwards.
	applied func(t *testing.T, s *aztest.Service) int
	// traceless means that the write leaves no trace: a lost response may leave the outcome unknown, and a write that
	// is delivered twice looks like one by another writer.
	traceless bool
}{
	{name: "create",
		run: func(ctx context.Context, s *aztest.Service) (optimistic.Result, error) {
			return optimistic.Create(ctx, blobs.NewJSON[optest.Counter](s.BlockBlob("box", "new.json")), optest.Counter{N: 1}, &optimistic.WriteOptions{SendOptions: optest.Recreate})
		},
		applied: func(t *testing.T, s *aztest.Service) int { return optest.Count(t, s.BlockBlob("box", "new.json")) },
	},
	{name: "replace",
		run: func(ctx context.Context, s *aztest.Service) (optimistic.Result, error) {
			target := blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json"))
			v, err := optimistic.Read(ctx, target, nil)
			if err != nil {
				return optimistic.Result{}, err
			}
			return optimistic.Replace(ctx, target, v, optest.Counter{N: v.Value.N + 1}, nil)
		},
		applied: func(t *testing.T, s *aztest.Service) int { return optest.Count(t, s.BlockBlob("box", "n.json")) },
	},
	{name: "delete", traceless: true,
		run: func(ctx context.Context, s *aztest.Service) (optimistic.Result, error) {
			target := blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json"))
			v, err := optimistic.Read(ctx, target, nil)
			if err != nil {
				return optimistic.Result{}, err
			}
			return optimistic.Delete(ctx, target, v.State, nil)
		},
		applied: gone,
	},
	{name: "delete whatever is there", traceless: true,
		run: func(ctx context.Context, s *aztest.Service) (optimistic.Result, error) {
			return optimistic.Delete(ctx, blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json")), optimistic.State{}, nil)
		},
		applied: gone,
	},
	{name: "metadata",
		run: func(ctx context.Context, s *aztest.Service) (optimistic.Result, error) {
			return optimistic.Update(ctx, blobs.NewMetadata(s.BlockBlob("box", "n.json").BlobClient()), func(_ context.Context, m *map[string]string) error {
				(*m)["n"] += "x"
				return nil
			}, nil)
		},
		applied: func(t *testing.T, s *aztest.Service) int {
			v, err := optimistic.Read(t.Context(), blobs.NewMetadata(s.BlockBlob("box", "n.json").BlobClient()), nil)
			if err != nil {
				t.Fatal(err)
			}
			return len(v.Value["n"])
		},
	},
	{name: "put, create only",
		run: func(ctx context.Context, s *aztest.Service) (optimistic.Result, error) {
			return blobs.Upload(ctx, s.BlockBlob("box", "up.json"), optest.Body(`{"n":1}`), &blobs.UploadOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}, SendOptions: optest.Recreate})
		},
		applied: func(t *testing.T, s *aztest.Service) int { return optest.Count(t, s.BlockBlob("box", "up.json")) },
	},
	{name: "put, last writer wins",
		run: func(ctx context.Context, s *aztest.Service) (optimistic.Result, error) {
			return blobs.Upload(ctx, s.BlockBlob("box", "n.json"), optest.Body(`{"n":1}`), nil)
		},
		applied: func(t *testing.T, s *aztest.Service) int { return optest.Count(t, s.BlockBlob("box", "n.json")) },
	},
	{name: "put, in blocks",
		run: func(ctx context.Context, s *aztest.Service) (optimistic.Result, error) {
			client := s.BlockBlob("box", "n.json")
			resp, err := client.GetProperties(ctx, nil)
			if err != nil {
				return optimistic.Result{}, err
			}
			return blobs.Upload(ctx, client, optest.Body(`{"n":1}`), &blobs.UploadOptions{BlockSize: 3, Conditions: optimistic.Conditions{IfMatch: *resp.ETag}})
		},
		applied: func(t *testing.T, s *aztest.Service) int { return optest.Count(t, s.BlockBlob("box", "n.json")) },
	},
}

func gone(t *testing.T, s *aztest.Service) int {
	_, err := s.BlockBlob("box", "n.json").GetProperties(t.Context(), nil)
	if azerr.Has(err, "BlobNotFound") {
		return 1
	}
	return 0
}

// TestEveryWriteUnderEveryFault is the promise in one table: success means applied once, a conflict not at all, and
// only an unknown outcome may be either.
func TestEveryWriteUnderEveryFault(t *testing.T) {
	commits := func(r *aztest.Request) bool { return aztest.Writes(r) && r.Op != "Put Block" }
	for _, write := range writes {
		for name, fault := range optest.Every(commits) {
			t.Run(write.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, _ := optest.Quiet(t, `{"n":0}`)
					bubble.Sleep(time.Minute) // a younger blob may have been created after the deletion was sent
					s.SetFaults(fault)
					res, err := write.run(t.Context(), s)
					s.SetFaults()
					s.Flush()
					if got := write.applied(t, s); got != 1 {
						t.Errorf("applied %d times, want once: %+v, %v\n%v", got, res, err, s.Log())
					}
					open := errors.Is(err, optimistic.ErrOutcomeUnknown) || fault.Kind == aztest.AnswerTwice
					if err != nil && !(write.traceless && open) {
						t.Errorf("err = %v\n%v", err, s.Log())
					}
				})
			})
		}
	}
}

func TestBlocksAreStagedThroughFaults(t *testing.T) {
	for name, fault := range optest.Every(aztest.Op("Put Block")) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, "")
				s.SetFaults(fault)
				res, err := blobs.Upload(t.Context(), client, optest.Body("0123456789"), &blobs.UploadOptions{BlockSize: 3, SendOptions: optimistic.SendOptions{TryTimeout: 30 * time.Second}})
				if err != nil || res.Ambiguous != 0 {
					t.Fatalf("Upload = %+v, %v", res, err)
				}
				if got := optest.Get(t, client); got != "0123456789" {
					t.Errorf("content = %q", got)
				}
			})
		})
	}
}

// TestACreateIsNotRefusedBecauseOfItsOwnBlob: the response to the create is lost, and a retry by the SDK would get 409.
func TestACreateIsNotRefusedBecauseOfItsOwnBlob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, "")
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		res, err := optimistic.Create(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Counter{N: 7}, nil)
		if err != nil || !res.Created || res.Resolved != 1 {
			t.Fatalf("Create = %+v, %v", res, err)
		}
		optest.Requests(t, s, res, 2) // lost, looked at
		s.Reset()
		res, err = optimistic.Create(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Counter{N: 8}, nil)
		if !errors.Is(err, optimistic.ErrExists) || !errors.Is(err, optimistic.ErrConflict) || res.Created {
			t.Errorf("a second create: %+v, %v", res, err)
		}
		optest.Requests(t, s, res, 2)
	})
}

func TestSingleWritesCostOneRequest(t *testing.T) {
	s, client := optest.Quiet(t, "")
	target := blobs.NewJSON[optest.Counter](client)
	res, err := optimistic.Create(t.Context(), target, optest.Counter{N: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	optest.Requests(t, s, res, 1)
	v, err := optimistic.Read(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Reset()
	res, err = optimistic.Replace(t.Context(), target, v, optest.Counter{N: 2}, nil)
	if err != nil || res.BaseETag != v.ETag {
		t.Fatalf("Replace = %+v, %v", res, err)
	}
	optest.Requests(t, s, res, 1)
	s.Reset()
	res, err = optimistic.Replace(t.Context(), target, v, optest.Counter{N: 3}, nil)
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	if !ok || conflict.Base != v.ETag || conflict.Current != optest.ETagOf(t, client) {
		t.Fatalf("a stale Replace: %+v, %v", res, err)
	}
	if res.Requests != 2 {
		t.Errorf("a conflict took %d requests, want 2", res.Requests)
	}
	s.Reset()
	res, err = optimistic.Delete(t.Context(), target, v.State, nil)
	if !errors.Is(err, optimistic.ErrConflict) {
		t.Errorf("a stale Delete: %+v, %v", res, err)
	}
	optest.Requests(t, s, res, 2)
	s.Reset()
	res, err = optimistic.Delete(t.Context(), target, optimistic.State{ETag: azcore.ETagAny}, nil)
	if err != nil || res.ETag != "" {
		t.Errorf("Delete = %+v, %v", res, err)
	}
	optest.Requests(t, s, res, 1)
	if _, err = optimistic.Delete(t.Context(), target, optimistic.State{}, nil); !errors.Is(err, optimistic.ErrNotFound) {
		t.Errorf("deleting a missing blob: %v", err)
	}
	if _, err = optimistic.Read(t.Context(), target, nil); !errors.Is(err, optimistic.ErrNotFound) {
		t.Errorf("reading a missing blob: %v", err)
	}
}
