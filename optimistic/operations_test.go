package optimistic

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

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// underID applies an increment under an OperationID, by a client of its own, to one of the kinds of resource.
var underID = map[string]func(ctx context.Context, s *aztest.Service, id string) (Result, error){
	"blob": func(ctx context.Context, s *aztest.Service, id string) (Result, error) {
		return Update(ctx, JSONBlob[counter](s.BlockBlob("box", "n.json")), increment, &UpdateOptions{OperationID: id, Attempts: -1})
	},
	"metadata": func(ctx context.Context, s *aztest.Service, id string) (Result, error) {
		return Update(ctx, BlobMetadata(s.BlockBlob("box", "n.json").BlobClient()), func(_ context.Context, m *map[string]string) error {
			(*m)["n"] += "i"
			return nil
		}, &UpdateOptions{OperationID: id, Attempts: -1})
	},
	"tags": func(ctx context.Context, s *aztest.Service, id string) (Result, error) {
		return Update(ctx, BlobTags(s.BlockBlob("box", "n.json").BlobClient()), func(_ context.Context, m *map[string]string) error {
			(*m)["n"] += "i"
			return nil
		}, &UpdateOptions{OperationID: id, Attempts: -1})
	},
	"entity": func(ctx context.Context, s *aztest.Service, id string) (Result, error) {
		return Update(ctx, TableEntity[counter](s.Table("t"), "p", "r"), increment, &UpdateOptions{OperationID: id, Create: true, Attempts: -1})
	},
	"transaction": func(ctx context.Context, s *aztest.Service, id string) (Result, error) {
		res, err := Transact(ctx, s.Table("t"), "p", func(ctx context.Context, tx *Tx) error {
			var c counter
			if _, err := tx.Get(ctx, "tx", &c); err != nil {
				return err
			}
			c.N++
			return tx.Put("tx", c)
		}, &TransactOptions{OperationID: id, Attempts: -1})
		return res.Result, err
	},
}

func underIDs(t *testing.T, do func(t *testing.T, s *aztest.Service, apply func(id string) Result)) {
	for name, under := range underID {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(nil)
				put(t, s.BlockBlob("box", "n.json"), `{"n":0}`)
				do(t, s, func(id string) Result {
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
	underIDs(t, func(t *testing.T, s *aztest.Service, apply func(string) Result) {
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

// TestTheWindowOfAnOperation is what the doc comments state.
func TestTheWindowOfAnOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lineage
		first := newIntent("", "0")
		l = l.perform(first, time.Now())
		for i := range OperationsKept - 1 {
			l = ParseLineage("", l.perform(newIntent("", fmt.Sprint(i+1)), time.Now()).OperationsString())
		}
		if !l.performed(first) {
			t.Errorf("it is forgotten after %d others", OperationsKept-1)
		}
		if l = l.perform(newIntent("", "last"), time.Now()); l.performed(first) || len(l.operations) != OperationsKept {
			t.Errorf("%d are kept", len(l.operations))
		}
		if n := len(l.OperationsString()); n > 3500 {
			t.Errorf("they take %d bytes", n)
		}

		l = Lineage{}.perform(first, time.Now())
		bubble.Sleep(OperationAge)
		if l = l.perform(intent{}, time.Now()); !l.performed(first) {
			t.Errorf("it is forgotten after %v", OperationAge)
		}
		bubble.Sleep(2 * time.Hour)
		if l = l.perform(intent{}, time.Now()); l.performed(first) {
			t.Errorf("it is kept for more than %v, in metadata that others need", OperationAge)
		}
		ahead := Lineage{}.perform(first, time.Now().Add(3*time.Hour))
		if !ahead.perform(intent{}, time.Now()).performed(first) {
			t.Error("an operation from a clock that is ahead is taken for an old one")
		}
	})
}

// TestContentAndMetadataAreDifferentOperations under one id.
func TestContentAndMetadataAreDifferentOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		put(t, s.BlockBlob("box", "n.json"), `{"n":0}`)
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
		s, client := quiet(t, `{"n":0}`)
		before := etagOf(t, client)
		pinned := &UpdateOptions{OperationID: "x", Conditions: Conditions{IfMatch: before}}
		for i, want := range []bool{false, true} {
			if res, err := Update(t.Context(), JSONBlob[counter](client), increment, pinned); err != nil || res.AlreadyApplied != want {
				t.Errorf("update %d: %+v, %v", i, res, err)
			}
		}
		base, err := Read(t.Context(), JSONBlob[counter](client), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{false, true} {
			s.Reset()
			res, err := Replace(t.Context(), JSONBlob[counter](client), base, counter{N: 9}, &WriteOptions{OperationID: "y"})
			if err != nil || res.AlreadyApplied != want || res.Changed == want {
				t.Errorf("replace %d: %+v, %v", i, res, err)
			}
			requests(t, s, res, 1+i)
		}
		for i, want := range []bool{false, true} {
			res, err := Create(t.Context(), JSONBlob[counter](s.BlockBlob("box", "new")), counter{N: 9}, &WriteOptions{OperationID: "z"})
			if err != nil || res.AlreadyApplied != want {
				t.Errorf("create %d: %+v, %v", i, res, err)
			}
		}
	})
}

// TestOneOfTwoCallsAtOnceAppliesTheOperation, and the others say so, also when responses are lost.
func TestOneOfTwoCallsAtOnceAppliesTheOperation(t *testing.T) {
	for name, under := range underID {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				synctest.Test(t, func(t *testing.T) {
					s := aztest.New(&aztest.Options{Seed: seed, Latency: latencies(int64(seed))})
					tagged := &blockblob.UploadOptions{Tags: map[string]string{LineageKey: "-"}}
					if _, err := s.BlockBlob("box", "n.json").Upload(t.Context(), body(`{"n":0}`), tagged); err != nil {
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

func TestARunThatChangesNothingLeavesATrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := quiet(t, `{"n":0}`)
		runs := 0
		look := func(context.Context, *counter) error { runs++; return nil }
		opts := &UpdateOptions{OperationID: "look"}
		res, err := Update(t.Context(), JSONBlob[counter](client), look, opts)
		if err != nil || res.ETag != etagOf(t, client) || res.WriteID == "" {
			t.Errorf("Update = %+v, %v", res, err)
		}
		s.Reset()
		if res, err = Update(t.Context(), JSONBlob[counter](client), look, opts); err != nil || !res.AlreadyApplied || runs != 1 {
			t.Errorf("the second run: %+v, %v", res, err)
		}
		requests(t, s, res, 1)

		skip := func(context.Context, *counter) error { runs++; return ErrSkip }
		for range 2 {
			if res, err := Update(t.Context(), JSONBlob[counter](client), skip, &UpdateOptions{OperationID: "skip"}); err != nil || res.AlreadyApplied {
				t.Errorf("what was skipped has not been carried out: %+v, %v", res, err)
			}
		}
		for _, under := range []string{"entity", "metadata", "tags"} {
			nothing := map[string]func() (Result, error){
				"entity": func() (Result, error) {
					return Update(t.Context(), TableEntity[counter](s.Table("t"), "p", "r"), look, &UpdateOptions{OperationID: "look", Create: true})
				},
				"metadata": func() (Result, error) {
					return Update(t.Context(), BlobMetadata(client.BlobClient()), func(context.Context, *map[string]string) error { return nil }, opts)
				},
				"tags": func() (Result, error) {
					return Update(t.Context(), BlobTags(client.BlobClient()), func(context.Context, *map[string]string) error { return nil }, opts)
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
		s, client := quiet(t, "")
		full := map[string]*string{"big": new(strings.Repeat("x", maxMetadata-10))}
		if _, err := client.Upload(t.Context(), body(`{"n":0}`), &blockblob.UploadOptions{Metadata: full}); err != nil {
			t.Fatal(err)
		}
		s.Reset()
		_, err := Update(t.Context(), JSONBlob[counter](client), increment, &UpdateOptions{OperationID: "x"})
		if err == nil || !strings.Contains(err.Error(), "OperationID") || count(t, client) != 0 {
			t.Errorf("err = %v, n = %d", err, count(t, client))
		}
		if _, err := Update(t.Context(), JSONBlob[counter](client), increment, nil); err != nil || count(t, client) != 1 {
			t.Errorf("without an operation: %v", err)
		}

		small := s.BlockBlob("box", "small")
		put(t, small, `{"n":0}`)
		if _, err := Update(t.Context(), JSONBlob[counter](small), increment, &UpdateOptions{OperationID: "x"}); err != nil {
			t.Fatal(err)
		}
		_, err = Update(t.Context(), BlobMetadata(small.BlobClient()), func(_ context.Context, m *map[string]string) error {
			(*m)["big"] = strings.Repeat("x", maxMetadata-10)
			return nil
		}, nil)
		if err == nil || !strings.Contains(err.Error(), "remembered") {
			t.Errorf("metadata that would push an operation out: %v", err)
		}
		if _, err := Update(t.Context(), BlobHeaders(small.BlobClient()), func(_ context.Context, h *HTTPHeaders) error { h.CacheControl = "no-cache"; return nil },
			&UpdateOptions{OperationID: "x"}); err == nil || !strings.Contains(err.Error(), "no place to remember") {
			t.Errorf("headers: %v", err)
		}
	})
}

// TestWritesWithoutALineageKeepTheOperations.
func TestWritesWithoutALineageKeepTheOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		put(t, s.BlockBlob("box", "n.json"), `{"n":0}`)
		for _, kind := range []string{"blob", "entity"} {
			if _, err := underID[kind](t.Context(), s, "x"); err != nil {
				t.Fatal(err)
			}
		}
		bare := &UpdateOptions{Sending: Sending{LineageSize: -1}}
		_, err1 := Update(t.Context(), JSONBlob[counter](s.BlockBlob("box", "n.json")), increment, bare)
		whole := TableEntity[counter](s.Table("t"), "p", "r")
		whole.Mode = ReplaceWhole
		_, err2 := Update(t.Context(), whole, increment, bare)
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
