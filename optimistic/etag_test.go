package optimistic_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/azconc/azconc/optimistic/pages"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/settings"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
)

// versioned are all targets whose service gives them an ETag, or an equivalent.
func versioned() []site {
	all := slices.DeleteFunc(slices.Clone(sites), func(s site) bool { return s.lastWins })
	row := func(mode tables.Mode) func(t *testing.T, s *aztest.Service) rig {
		return func(t *testing.T, s *aztest.Service) rig {
			optest.Insert(t, s.Table("orders"), "r", "")
			return rigOf(s, func() optimistic.Target[map[string]string] {
				e := tables.NewEntity[map[string]string](s.Table("orders"), "p", "r")
				e.Mode = mode
				return e
			}, inMap, toMap)
		}
	}
	return append(all,
		site{name: "content", Change: "Put Blob", make: func(t *testing.T, s *aztest.Service) rig {
			optest.Put(t, s.BlockBlob("box", "n"), "{}")
			return rigOf(s, func() optimistic.Target[map[string]string] {
				return blobs.NewJSON[map[string]string](s.BlockBlob("box", "n"))
			},
				inMap, toMap)
		}},
		site{name: "metadata", Change: "Set Blob Metadata", make: func(t *testing.T, s *aztest.Service) rig {
			optest.Put(t, s.BlockBlob("box", "n"), "{}")
			return rigOf(s, func() optimistic.Target[map[string]string] {
				return blobs.NewMetadata(s.BlockBlob("box", "n").BlobClient())
			},
				inMap, toMap)
		}},
		site{name: "entity", Change: "Merge Entity", make: row(tables.MergeChanges)},
		site{name: "whole entity", Change: "Update Entity", make: row(tables.ReplaceWhole)},
	)
}

// guarded reports whether a write has a condition on the version that it replaces, or the lease of a turn.
func guarded(r aztest.Request) bool {
	for _, name := range []string{"If-Match", "X-Ms-If-Tags", "X-Ms-Lease-Id"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}

// TestAProxyThatDropsETagsLosesNoUpdate: a write over a version without an ETag would have no condition.
func TestAProxyThatDropsETagsLosesNoUpdate(t *testing.T) {
	for _, site := range versioned() {
		for name, share := range map[string]float64{"always": 1, "often": 0.5, "at times": 0.1} {
			t.Run(site.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := site.make(t, aztest.New(&aztest.Options{Seed: 7, Latency: optest.Latencies(7)}))
					r.Reset()
					r.SetFaults(aztest.Fault{Kind: aztest.Rechunk, Drop: []string{"ETag"}, Probability: share})
					var mu sync.Mutex
					var wg sync.WaitGroup
					counts := make([]struct{ applied, unknown int }, slots)
					for me := range slots {
						wg.Go(func() {
							for range 10 / min(optest.RaceScale, 3) {
								_, err := r.update(context.Background(), func(n []int) { n[me]++ }, &optimistic.UpdateOptions{Attempts: -1, Elapsed: -1})
								mu.Lock()
								switch {
								case err == nil:
									counts[me].applied++
								case errors.Is(err, optimistic.ErrOutcomeUnknown):
									counts[me].unknown++
								}
								mu.Unlock()
							}
						})
					}
					wg.Wait()
					r.SetFaults()
					got, err := r.read(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					for me, c := range counts {
						if got[me] < c.applied || got[me] > c.applied+c.unknown {
							t.Errorf("writer %d: %d applied, %d unknown, but the number is %d", me, c.applied, c.unknown, got[me])
						}
					}
					for _, q := range r.Log() {
						if q.Op == site.Change && !guarded(q) {
							t.Errorf("sent without a condition: %v", q)
						}
					}
				})
			})
		}
	}
}

// TestEveryResultWithoutAnETagIsResolvedOrAnError: what a call reports after a proxy has dropped the ETag of one response.
func TestEveryResultWithoutAnETagIsResolvedOrAnError(t *testing.T) {
	type world struct {
		s *aztest.Service
		b *blob.Client
	}
	for name, call := range map[string]func(ctx context.Context, w world) (optimistic.Result, error){
		"upload": func(ctx context.Context, w world) (optimistic.Result, error) {
			return blobs.Upload(ctx, w.s.BlockBlob("box", "new"), optest.Body("x"), nil)
		},
		"upload in blocks": func(ctx context.Context, w world) (optimistic.Result, error) {
			return blobs.Upload(ctx, w.s.BlockBlob("box", "new"), optest.Body("xyz"), &blobs.UploadOptions{BlockSize: 1})
		},
		"create": func(ctx context.Context, w world) (optimistic.Result, error) {
			return optimistic.Create(ctx, blobs.NewBytes(w.s.BlockBlob("box", "new")), []byte("x"), nil)
		},
		"create pages": func(ctx context.Context, w world) (optimistic.Result, error) {
			return pages.Create(ctx, w.s.Container("box").NewPageBlobClient("new"), 512, nil)
		},
		"copy": func(ctx context.Context, w world) (optimistic.Result, error) {
			r, err := blobs.Copy(ctx, w.s.Container("box").NewBlobClient("new"), w.b, nil)
			return r.Result, err
		},
		"snapshot": func(ctx context.Context, w world) (optimistic.Result, error) {
			r, err := blobs.Snapshot(ctx, w.s.Container("box"), "n.json", nil)
			return r.Result, err
		},
		"container": func(ctx context.Context, w world) (optimistic.Result, error) {
			return settings.CreateContainer(ctx, w.s.Container("new"), nil)
		},
		"upsert": func(ctx context.Context, w world) (optimistic.Result, error) {
			return tables.Upsert(ctx, tables.NewEntity[optest.Counter](w.s.Table("orders"), "p", "r"), optest.Counter{N: 1}, nil)
		},
	} {
		for skip := range 3 {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, `{"n":0}`)
				s.Table("orders")
				s.Reset()
				s.SetFaults(aztest.Fault{Kind: aztest.Rechunk, Drop: []string{"ETag"}, Skip: skip, Count: 1})
				res, err := call(t.Context(), world{s, client.BlobClient()})
				if err != nil && !errors.Is(err, optimistic.ErrOutcomeUnknown) || err == nil && !res.Changed {
					t.Errorf("%s, response %d: %+v, %v\n%v", name, skip, res, err, s.Log())
				}
				met := slices.ContainsFunc(s.Log(), func(r aztest.Request) bool { return r.Fault == aztest.Rechunk })
				if err == nil && met && res.ETag == "" && res.Resolved == 0 {
					t.Errorf("%s, response %d: no ETag, and nothing was resolved: %+v", name, skip, res)
				}
			})
		}
	}
}
