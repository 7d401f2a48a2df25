package optimistic_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// underID applies an increment under an OperationID, by a client of its own, to one of the kinds of resource.
var underID = map[string]func(ctx context.Context, s *aztest.Service, id string) (optimistic.Result, error){
	"blob": func(ctx context.Context, s *aztest.Service, id string) (optimistic.Result, error) {
		return optimistic.Update(ctx, blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json")), optest.Increment, &optimistic.UpdateOptions{OperationID: id, Attempts: -1})
	},
	"metadata": func(ctx context.Context, s *aztest.Service, id string) (optimistic.Result, error) {
		return optimistic.Update(ctx, blobs.NewMetadata(s.BlockBlob("box", "n.json").BlobClient()), func(_ context.Context, m *map[string]string) error {
			(*m)["n"] += "i"
			return nil
		}, &optimistic.UpdateOptions{OperationID: id, Attempts: -1})
	},
	"tags": func(ctx context.Context, s *aztest.Service, id string) (optimistic.Result, error) {
		return optimistic.Update(ctx, blobs.NewTags(s.BlockBlob("box", "n.json").BlobClient()), func(_ context.Context, m *map[string]string) error {
			(*m)["n"] += "i"
			return nil
		}, &optimistic.UpdateOptions{OperationID: id, Attempts: -1})
	},
	"entity": func(ctx context.Context, s *aztest.Service, id string) (optimistic.Result, error) {
		return optimistic.Update(ctx, tables.NewEntity[optest.Counter](s.Table("t"), "p", "r"), optest.Increment, &optimistic.UpdateOptions{OperationID: id, Create: true, Attempts: -1})
	},
	"transaction": func(ctx context.Context, s *aztest.Service, id string) (optimistic.Result, error) {
		res, err := tables.Transact(ctx, s.Table("t"), "p", func(ctx context.Context, tx *tables.Tx) error {
			var c optest.Counter
			if _, err := tx.Get(ctx, "tx", &c); err != nil {
				return err
			}
			c.N++
			return tx.Put("tx", c)
		}, &tables.TransactOptions{OperationID: id, Attempts: -1})
		return res.Result, err
	},
}

func underIDs(t *testing.T, do func(t *testing.T, s *aztest.Service, apply func(id string) optimistic.Result)) {
	for name, under := range underID {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(nil)
				optest.Put(t, s.BlockBlob("box", "n.json"), `{"n":0}`)
				do(t, s, func(id string) optimistic.Result {
					res, err := under(t.Context(), s, id)
					if err != nil {
						t.Fatal(err)
					}
					return res
				})
			})
		})
	}
}

func TestAnOperationIsRememberedAcrossOtherWrites(t *testing.T) {
	underIDs(t, func(t *testing.T, s *aztest.Service, apply func(string) optimistic.Result) {
		if res := apply("order-17"); res.AlreadyApplied || !res.Changed {
			t.Errorf("the first run: %+v", res)
		}
		others := 200 // plain writes
		if strings.HasSuffix(t.Name(), "tags") {
			others = 10
		}
		for range others {
			apply("")
		}
		if res := apply("order-17"); !res.AlreadyApplied || res.Changed {
			t.Errorf("the second run: %+v", res)
		}
		for i := range 6 {
			apply(fmt.Sprint("order-", i))
		}
		if res := apply("order-17"); !res.AlreadyApplied || res.ETag == "" && !strings.HasSuffix(t.Name(), "transaction") {
			t.Errorf("after six operations: %+v", res)
		}
	})
}

// TestAnOperationIsForgottenAfterItsWindow checks the window that the doc comments state.
func TestAnOperationIsForgottenAfterItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l protocol.Lineage
		first := protocol.NewIntent("", "0")
		l = l.Perform(first, time.Now())
		for i := range optimistic.OperationsKept - 1 {
			l = protocol.ParseLineage("", l.Perform(protocol.NewIntent("", fmt.Sprint(i+1)), time.Now()).OperationsString())
		}
		if !l.Performed(first) {
			t.Errorf("it is forgotten after %d others", optimistic.OperationsKept-1)
		}
		if l = l.Perform(protocol.NewIntent("", "last"), time.Now()); l.Performed(first) || len(l.Operations) != optimistic.OperationsKept {
			t.Errorf("%d are kept", len(l.Operations))
		}
		if n := len(l.OperationsString()); n > 3500 {
			t.Errorf("they take %d bytes", n)
		}

		l = protocol.Lineage{}.Perform(first, time.Now())
		bubble.Sleep(optimistic.OperationAge)
		if l = l.Perform(protocol.Intent{}, time.Now()); !l.Performed(first) {
			t.Errorf("it is forgotten after %v", optimistic.OperationAge)
		}
		bubble.Sleep(2 * time.Hour)
		if l = l.Perform(protocol.Intent{}, time.Now()); l.Performed(first) {
			t.Errorf("it is kept for more than %v, in metadata that others need", optimistic.OperationAge)
		}
		ahead := protocol.Lineage{}.Perform(first, time.Now().Add(3*time.Hour))
		if !ahead.Perform(protocol.Intent{}, time.Now()).Performed(first) {
			t.Error("an operation from a clock that is ahead is taken for an old one")
		}
	})
}

// TestContentAndMetadataAreDifferentOperations under one id.
func TestContentAndMetadataAreDifferentOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		optest.Put(t, s.BlockBlob("box", "n.json"), `{"n":0}`)
		for round, want := range []bool{false, true} {
			for name, under := range underID {
				if res, err := under(t.Context(), s, "one"); err != nil || res.AlreadyApplied != want || res.Changed == want {
					t.Errorf("round %d, %s: %+v, %v", round, name, res, err)
				}
			}
		}
	})
}

// TestARerunOfAnAppliedOperationIsNoConflict, whatever version it is pinned to.
func TestARerunOfAnAppliedOperationIsNoConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":0}`)
		before := optest.ETagOf(t, client)
		pinned := &optimistic.UpdateOptions{OperationID: "x", Conditions: optimistic.Conditions{IfMatch: before}}
		for i, want := range []bool{false, true} {
			if res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, pinned); err != nil || res.AlreadyApplied != want {
				t.Errorf("update %d: %+v, %v", i, res, err)
			}
		}
		base, err := optimistic.Read(t.Context(), blobs.NewJSON[optest.Counter](client), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{false, true} {
			s.Reset()
			res, err := optimistic.Replace(t.Context(), blobs.NewJSON[optest.Counter](client), base, optest.Counter{N: 9}, &optimistic.WriteOptions{OperationID: "y"})
			if err != nil || res.AlreadyApplied != want || res.Changed == want {
				t.Errorf("replace %d: %+v, %v", i, res, err)
			}
			optest.Requests(t, s, res, 1+i)
		}
		for i, want := range []bool{false, true} {
			res, err := optimistic.Create(t.Context(), blobs.NewJSON[optest.Counter](s.BlockBlob("box", "new")), optest.Counter{N: 9}, &optimistic.WriteOptions{OperationID: "z"})
			if err != nil || res.AlreadyApplied != want {
				t.Errorf("create %d: %+v, %v", i, res, err)
			}
		}
	})
}

// TestOneOfSeveralConcurrentCallsAppliesTheOperation, and the others say so, also when responses are lost.
func TestOneOfSeveralConcurrentCallsAppliesTheOperation(t *testing.T) {
	for name, under := range underID {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				synctest.Test(t, func(t *testing.T) {
					s := aztest.New(&aztest.Options{Seed: seed, Latency: optest.Latencies(int64(seed))})
					tagged := &blockblob.UploadOptions{Tags: map[string]string{protocol.LineageKey: "-"}}
					if _, err := s.BlockBlob("box", "n.json").Upload(t.Context(), optest.Body(`{"n":0}`), tagged); err != nil {
						t.Fatal(err)
					}
					if seed%2 == 1 {
						s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Probability: 0.3}, aztest.Fault{Kind: aztest.AnswerTwice, Match: aztest.Writes, Probability: 0.3})
					}
					var mu sync.Mutex
					var wg sync.WaitGroup
					applied, already := 0, 0
					for range 4 {
						wg.Go(func() {
							res, err := under(t.Context(), s, "order-17")
							mu.Lock()
							defer mu.Unlock()
							switch {
							case err != nil:
								t.Errorf("seed %d: %v", seed, err)
							case res.AlreadyApplied == res.Changed:
								t.Errorf("seed %d: %+v", seed, res)
							case res.AlreadyApplied:
								already++
							default:
								applied++
							}
						})
					}
					wg.Wait()
					if applied != 1 || already != 3 {
						t.Errorf("seed %d: %d applied it, %d found it applied", seed, applied, already)
					}
				})
			}
		})
	}
}

func TestAnOperationThatChangesNothingIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":0}`)
		runs := 0
		look := func(context.Context, *optest.Counter) error { runs++; return nil }
		opts := &optimistic.UpdateOptions{OperationID: "look"}
		res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), look, opts)
		if err != nil || res.ETag != optest.ETagOf(t, client) || res.WriteID == "" {
			t.Errorf("Update = %+v, %v", res, err)
		}
		s.Reset()
		if res, err = optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), look, opts); err != nil || !res.AlreadyApplied || runs != 1 {
			t.Errorf("the second run: %+v, %v", res, err)
		}
		optest.Requests(t, s, res, 1)

		skip := func(context.Context, *optest.Counter) error { runs++; return optimistic.ErrSkip }
		for range 2 {
			if res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), skip, &optimistic.UpdateOptions{OperationID: "skip"}); err != nil || res.AlreadyApplied {
				t.Errorf("what was skipped has not been carried out: %+v, %v", res, err)
			}
		}
		for _, under := range []string{"entity", "metadata", "tags"} {
			nothing := map[string]func() (optimistic.Result, error){
				"entity": func() (optimistic.Result, error) {
					return optimistic.Update(t.Context(), tables.NewEntity[optest.Counter](s.Table("t"), "p", "r"), look, &optimistic.UpdateOptions{OperationID: "look", Create: true})
				},
				"metadata": func() (optimistic.Result, error) {
					return optimistic.Update(t.Context(), blobs.NewMetadata(client.BlobClient()), func(context.Context, *map[string]string) error { return nil }, opts)
				},
				"tags": func() (optimistic.Result, error) {
					return optimistic.Update(t.Context(), blobs.NewTags(client.BlobClient()), func(context.Context, *map[string]string) error { return nil }, opts)
				},
			}[under]
			for i, want := range []bool{false, true} {
				if res, err := nothing(); err != nil || res.AlreadyApplied != want {
					t.Errorf("%s, run %d: %+v, %v", under, i, res, err)
				}
			}
		}
	})
}

// TestAnOperationThatCannotBeRememberedIsRefused, rather than being carried out twice.
func TestAnOperationThatCannotBeRememberedIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, "")
		full := map[string]*string{"big": new(strings.Repeat("x", meta.Max-10))}
		if _, err := client.Upload(t.Context(), optest.Body(`{"n":0}`), &blockblob.UploadOptions{Metadata: full}); err != nil {
			t.Fatal(err)
		}
		s.Reset()
		_, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, &optimistic.UpdateOptions{OperationID: "x"})
		if err == nil || !strings.Contains(err.Error(), "OperationID") || optest.Count(t, client) != 0 {
			t.Errorf("err = %v, n = %d", err, optest.Count(t, client))
		}
		if _, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil); err != nil || optest.Count(t, client) != 1 {
			t.Errorf("without an operation: %v", err)
		}

		small := s.BlockBlob("box", "small")
		optest.Put(t, small, `{"n":0}`)
		if _, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](small), optest.Increment, &optimistic.UpdateOptions{OperationID: "x"}); err != nil {
			t.Fatal(err)
		}
		_, err = optimistic.Update(t.Context(), blobs.NewMetadata(small.BlobClient()), func(_ context.Context, m *map[string]string) error {
			(*m)["big"] = strings.Repeat("x", meta.Max-10)
			return nil
		}, nil)
		if err == nil || !strings.Contains(err.Error(), "remembered") {
			t.Errorf("metadata that would push an operation out: %v", err)
		}
		if _, err := optimistic.Update(t.Context(), blobs.NewHeaders(small.BlobClient()), func(_ context.Context, h *blobs.HTTPHeaders) error { h.CacheControl = "no-cache"; return nil },
			&optimistic.UpdateOptions{OperationID: "x"}); err == nil || !strings.Contains(err.Error(), "no place to remember") {
			t.Errorf("headers: %v", err)
		}
	})
}

// TestWritesWithoutALineageKeepTheOperations.
func TestWritesWithoutALineageKeepTheOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		optest.Put(t, s.BlockBlob("box", "n.json"), `{"n":0}`)
		for _, kind := range []string{"blob", "entity"} {
			if _, err := underID[kind](t.Context(), s, "x"); err != nil {
				t.Fatal(err)
			}
		}
		bare := &optimistic.UpdateOptions{SendOptions: optimistic.SendOptions{NoLineage: true}}
		_, err1 := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json")), optest.Increment, bare)
		whole := tables.NewEntity[optest.Counter](s.Table("t"), "p", "r")
		whole.Mode = tables.ReplaceWhole
		_, err2 := optimistic.Update(t.Context(), whole, optest.Increment, bare)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"blob", "entity"} {
			if res, err := underID[kind](t.Context(), s, "x"); err != nil || !res.AlreadyApplied {
				t.Errorf("%s: %+v, %v", kind, res, err)
			}
		}
	})
}

// TestAReplaceOfAnyVersionKeepsTheOperations: it dropped them, so that a rerun was carried out again.
func TestAReplaceOfAnyVersionKeepsTheOperations(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":0}`)
	target, once := blobs.NewJSON[optest.Counter](client), &optimistic.UpdateOptions{OperationID: "A"}
	if _, err := optimistic.Update(t.Context(), target, optest.Increment, once); err != nil {
		t.Fatal(err)
	}
	s.Reset()
	byHand := &optimistic.Version[optest.Counter]{State: optimistic.State{Exists: true, ETag: azcore.ETagAny}}
	res, err := optimistic.Replace(t.Context(), target, byHand, optest.Counter{N: 7}, nil)
	if optest.Requests(t, s, res, 2); err != nil || !res.Changed {
		t.Errorf("%+v, %v", res, err)
	}
	if res, err := optimistic.Update(t.Context(), target, optest.Increment, once); err != nil || !res.AlreadyApplied || optest.Count(t, client) != 7 {
		t.Errorf("again: %+v, %v; n = %d", res, err, optest.Count(t, client))
	}
}
