package optimistic

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

// writes are the single writes of this package. Each returns its error; applied tells how often it took effect.
var writes = []struct {
	name string
	run  func(ctx context.Context, s *aztest.Service) (Result, error)
	// applied counts the effect afterwards.
	applied func(t *testing.T, s *aztest.Service) int
	// traceless tells that the write leaves nothing to know it by: a lost response may leave the outcome open, and one
	// delivered twice reads as another's.
	traceless bool
}{
	{name: "create",
		run: func(ctx context.Context, s *aztest.Service) (Result, error) {
			return Create(ctx, JSONBlob[counter](s.BlockBlob("box", "new.json")), counter{N: 1}, &WriteOptions{Sending: recreate})
		},
		applied: func(t *testing.T, s *aztest.Service) int { return count(t, s.BlockBlob("box", "new.json")) },
	},
	{name: "replace",
		run: func(ctx context.Context, s *aztest.Service) (Result, error) {
			target := JSONBlob[counter](s.BlockBlob("box", "n.json"))
			v, err := Read(ctx, target, nil)
			if err != nil {
				return Result{}, err
			}
			return Replace(ctx, target, v, counter{N: v.Value.N + 1}, nil)
		},
		applied: func(t *testing.T, s *aztest.Service) int { return count(t, s.BlockBlob("box", "n.json")) },
	},
	{name: "delete", traceless: true,
		run: func(ctx context.Context, s *aztest.Service) (Result, error) {
			target := JSONBlob[counter](s.BlockBlob("box", "n.json"))
			v, err := Read(ctx, target, nil)
			if err != nil {
				return Result{}, err
			}
			return Delete(ctx, target, v.State, nil)
		},
		applied: gone,
	},
	{name: "delete whatever is there", traceless: true,
		run: func(ctx context.Context, s *aztest.Service) (Result, error) {
			return Delete(ctx, JSONBlob[counter](s.BlockBlob("box", "n.json")), State{}, nil)
		},
		applied: gone,
	},
	{name: "metadata",
		run: func(ctx context.Context, s *aztest.Service) (Result, error) {
			return Update(ctx, BlobMetadata(s.BlockBlob("box", "n.json").BlobClient()), func(_ context.Context, m *map[string]string) error {
				(*m)["n"] += "x"
				return nil
			}, nil)
		},
		applied: func(t *testing.T, s *aztest.Service) int {
			v, err := Read(t.Context(), BlobMetadata(s.BlockBlob("box", "n.json").BlobClient()), nil)
			if err != nil {
				t.Fatal(err)
			}
			return len(v.Value["n"])
		},
	},
	{name: "put, create only",
		run: func(ctx context.Context, s *aztest.Service) (Result, error) {
			return Upload(ctx, s.BlockBlob("box", "up.json"), body(`{"n":1}`), &UploadOptions{Conditions: Conditions{IfNoneMatch: "*"}, Sending: recreate})
		},
		applied: func(t *testing.T, s *aztest.Service) int { return count(t, s.BlockBlob("box", "up.json")) },
	},
	{name: "put, last writer wins",
		run: func(ctx context.Context, s *aztest.Service) (Result, error) {
			return Upload(ctx, s.BlockBlob("box", "n.json"), body(`{"n":1}`), nil)
		},
		applied: func(t *testing.T, s *aztest.Service) int { return count(t, s.BlockBlob("box", "n.json")) },
	},
	{name: "put, in blocks",
		run: func(ctx context.Context, s *aztest.Service) (Result, error) {
			client := s.BlockBlob("box", "n.json")
			resp, err := client.GetProperties(ctx, nil)
			if err != nil {
				return Result{}, err
			}
			return Upload(ctx, client, body(`{"n":1}`), &UploadOptions{BlockSize: 3, Conditions: Conditions{IfMatch: *resp.ETag}})
		},
		applied: func(t *testing.T, s *aztest.Service) int { return count(t, s.BlockBlob("box", "n.json")) },
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
		for name, fault := range every(commits) {
			t.Run(write.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, _ := quiet(t, `{"n":0}`)
					s.SetFaults(fault)
					res, err := write.run(t.Context(), s)
					s.SetFaults()
					s.Flush()
					if got := write.applied(t, s); got != 1 {
						t.Errorf("applied %d times, want once: %+v, %v\n%v", got, res, err, s.Log())
					}
					open := errors.Is(err, ErrOutcomeUnknown) || fault.Kind == aztest.AnswerTwice
					if err != nil && !(write.traceless && open) {
						t.Errorf("err = %v\n%v", err, s.Log())
					}
				})
			})
		}
	}
}

func TestBlocksAreStagedThroughFaults(t *testing.T) {
	for name, fault := range every(aztest.Op("Put Block")) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := quiet(t, "")
				s.SetFaults(fault)
				res, err := Upload(t.Context(), client, body("0123456789"), &UploadOptions{BlockSize: 3, Sending: Sending{TryTimeout: 30 * time.Second}})
				if err != nil || res.Ambiguous != 0 {
					t.Fatalf("Upload = %+v, %v", res, err)
				}
				if got := get(t, client); got != "0123456789" {
					t.Errorf("content = %q", got)
				}
			})
		})
	}
}

// TestACreateIsNeverToldItsOwnBlobExists: the answer to the create is lost, the SDK's retry would meet 409.
func TestACreateIsNeverToldItsOwnBlobExists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := quiet(t, "")
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		res, err := Create(t.Context(), JSONBlob[counter](client), counter{N: 7}, nil)
		if err != nil || !res.Created || res.Resolved != 1 {
			t.Fatalf("Create = %+v, %v", res, err)
		}
		requests(t, s, res, 2) // lost, looked at
		s.Reset()
		res, err = Create(t.Context(), JSONBlob[counter](client), counter{N: 8}, nil)
		if !errors.Is(err, ErrExists) || !errors.Is(err, ErrConflict) || res.Created {
			t.Errorf("a second create: %+v, %v", res, err)
		}
		requests(t, s, res, 2)
	})
}

func TestSingleWritesCostOneRequest(t *testing.T) {
	s, client := quiet(t, "")
	target := JSONBlob[counter](client)
	res, err := Create(t.Context(), target, counter{N: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	requests(t, s, res, 1)
	v, err := Read(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Reset()
	res, err = Replace(t.Context(), target, v, counter{N: 2}, nil)
	if err != nil || res.BaseETag != v.ETag {
		t.Fatalf("Replace = %+v, %v", res, err)
	}
	requests(t, s, res, 1)
	s.Reset()
	res, err = Replace(t.Context(), target, v, counter{N: 3}, nil)
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok || conflict.Base != v.ETag || conflict.Current != etagOf(t, client) {
		t.Fatalf("a stale Replace: %+v, %v", res, err)
	}
	if res.Requests != 2 {
		t.Errorf("a conflict took %d requests, want 2", res.Requests)
	}
	s.Reset()
	res, err = Delete(t.Context(), target, v.State, nil)
	if !errors.Is(err, ErrConflict) {
		t.Errorf("a stale Delete: %+v, %v", res, err)
	}
	requests(t, s, res, 2)
	s.Reset()
	res, err = Delete(t.Context(), target, State{ETag: azcore.ETagAny}, nil)
	if err != nil || res.ETag != "" {
		t.Errorf("Delete = %+v, %v", res, err)
	}
	requests(t, s, res, 1)
	if _, err = Delete(t.Context(), target, State{}, nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleting what is not there: %v", err)
	}
	if _, err = Read(t.Context(), target, nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("reading what is not there: %v", err)
	}
}
