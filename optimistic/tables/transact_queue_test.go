package tables

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// A row that one transaction inserts and another deletes, over and over, is a queue of one job. What a later insert of the
// same row shows proves nothing about an earlier one.

// jobs counts the jobs of each producer.
type jobs map[string]int

// putJob inserts the job if there is none, and counts it.
func putJob(me string, n int, found *int) func(context.Context, *Tx) error {
	return func(ctx context.Context, tx *Tx) error {
		waits, err := tx.Get(ctx, "job", nil)
		if err != nil {
			return err
		}
		var log jobs
		if _, err := tx.Get(ctx, "log", &log); err != nil {
			return err
		}
		if *found = log[me]; waits {
			return optimistic.ErrSkip
		}
		log[me] = n
		return errors.Join(tx.Insert("job", jobs{}), tx.Update("log", log))
	}
}

// TestAJobThatWasConsumedAndPutAgainIsNotCountedTwice: the response is lost, the job is consumed, and another producer puts
// the next. The repetition fails at that one, which shows an insert by another; the log shows our own transaction.
func TestAJobThatWasConsumedAndPutAgainIsNotCountedTwice(t *testing.T) {
	for name, tt := range map[string]struct {
		fault   aztest.FaultKind
		again   func(t *testing.T, s *aztest.Service) // what happens to the log meanwhile
		applied bool
		err     error
	}{
		"applied":                      {aztest.LoseAnswer, nil, true, nil},
		"applied, and counted on":      {aztest.LoseAnswer, func(t *testing.T, s *aztest.Service) { bumpLog(t, s) }, true, nil},
		"applied, and the log wiped":   {aztest.LoseAnswer, wipeLog, true, optimistic.ErrOutcomeUnknown},
		"not applied":                  {aztest.LoseRequest, func(t *testing.T, s *aztest.Service) { bumpLog(t, s) }, false, optimistic.ErrConflict},
		"not applied, the log is ours": {aztest.LoseRequest, nil, false, optimistic.ErrOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(nil)
				bankOf := s.Table("bank")
				if _, err := optimistic.Create(t.Context(), NewEntity[jobs](bankOf, "p", "log"), jobs{"a": 0}, nil); err != nil {
					t.Fatal(err)
				}
				s.SetFaults(aztest.Fault{Kind: tt.fault, Match: aztest.Op("Entity Group Transaction"), Count: 1})
				met := false
				client := meddling(t, s, func() {
					if met {
						return
					}
					met = true
					if tt.applied {
						del("job")(t, bankOf)
					}
					if _, err := optimistic.Create(context.Background(), NewEntity[jobs](bankOf, "p", "job"), jobs{}, nil); err != nil {
						t.Error(err)
					}
					if tt.again != nil {
						tt.again(t, s)
					}
				})
				found := 0
				res, err := Transact(t.Context(), client, "p", putJob("a", 1, &found), &TransactOptions{Attempts: 1})
				if !errors.Is(err, tt.err) || (err == nil) != res.Changed || res.Attempts != 1 {
					t.Errorf("%+v, %v; want %v\n%v", res, err, tt.err, s.Log())
				}
			})
		})
	}
}

// TestAWriteToAnUnreadRowBesideAnInsertProvesTheTransactionApplied: the response is lost, the job is consumed, and another producer puts
// the next, which was taken for a proof that nothing was applied. The log, which the change has not read, shows that all was.
// Where it was overwritten since, nothing shows anything.
func TestAWriteToAnUnreadRowBesideAnInsertProvesTheTransactionApplied(t *testing.T) {
	for name, blind := range map[string]func(*Tx) error{
		"merge":   func(tx *Tx) error { return tx.Merge("log", jobs{"a": 1}) },
		"upsert":  func(tx *Tx) error { return tx.Upsert("log", jobs{"a": 1}) },
		"replace": func(tx *Tx) error { return tx.Replace("log", jobs{"a": 1}) },
		"put":     func(tx *Tx) error { return tx.Put("log", jobs{"a": 1}) },
	} {
		for again, want := range map[string]error{"": nil, ", and the log wiped": optimistic.ErrOutcomeUnknown} {
			t.Run(name+again, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := aztest.New(nil)
					log, job := NewEntity[jobs](s.Table("bank"), "p", "log"), NewEntity[jobs](s.Table("bank"), "p", "job")
					if _, err := optimistic.Create(t.Context(), log, jobs{"a": 0}, nil); err != nil {
						t.Fatal(err)
					}
					s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Entity Group Transaction"), Count: 1})
					client := meddling(t, s, func() {
						del("job")(t, s.Table("bank"))
						if _, err := optimistic.Create(context.Background(), job, jobs{}, nil); err != nil {
							t.Error(err)
						}
						if want != nil {
							wipeLog(t, s)
						}
					})
					res, err := Transact(t.Context(), client, "p", func(_ context.Context, tx *Tx) error {
						return errors.Join(tx.Insert("job", jobs{}), blind(tx))
					}, nil)
					if !errors.Is(err, want) || (err == nil) != res.Changed || res.Attempts != 1 {
						t.Errorf("%+v, %v; want %v\n%v", res, err, want, s.Log())
					}
				})
			})
		}
	}
}

func bumpLog(t *testing.T, s *aztest.Service) {
	_, err := optimistic.Update(context.Background(), NewEntity[jobs](s.Table("bank"), "p", "log"), func(_ context.Context, l *jobs) error {
		(*l)["other"]++
		return nil
	}, nil)
	if err != nil {
		t.Error(err)
	}
}

func wipeLog(t *testing.T, s *aztest.Service) { overwrite("log")(t, s.Table("bank")) }

// production is the property: producers put one job at a time and count it in a row that all share, consumers take it. No
// producer's job counts twice.
type production struct{ producers, each int }

func (w production) play(t *testing.T, seed uint64) optest.Verdicts {
	s := aztest.New(&aztest.Options{Seed: seed, Latency: optest.Latencies(int64(seed))})
	if _, err := optimistic.Create(t.Context(), NewEntity[jobs](s.Table("bank"), "p", "log"), jobs{}, nil); err != nil {
		t.Fatal(err)
	}
	p := optest.Property{Service: s, Faults: optest.Unreliable(aztest.Op("Entity Group Transaction")), Each: w.each, OneTry: w.each + 1}
	for i := range w.producers {
		client := s.Table("bank")
		p.Writers = append(p.Writers, func(n, attempts int) (found int, err error) {
			res, err := Transact(t.Context(), client, "p", putJob(fmt.Sprint("producer", i), n, &found),
				&TransactOptions{Attempts: attempts, Elapsed: -1, SendOptions: optimistic.SendOptions{TryTimeout: time.Second}})
			if err == nil && !res.Changed {
				err = optimistic.ErrSkip // another job waits
			}
			return found, err
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	var consumers sync.WaitGroup
	for i := range 3 {
		consumers.Go(func() { consume(ctx, s, rand.New(rand.NewPCG(seed, uint64(100+i)))) })
	}
	v := p.Run()
	stop()
	consumers.Wait()
	return v
}

func consume(ctx context.Context, s *aztest.Service, rng *rand.Rand) {
	client := s.Table("bank")
	for ctx.Err() == nil {
		_, _ = Transact(ctx, client, "p", func(ctx context.Context, tx *Tx) error {
			if waits, err := tx.Get(ctx, "job", nil); err != nil || !waits {
				return errors.Join(err, optimistic.ErrSkip)
			}
			return tx.Delete("job")
		}, nil)
		bubble.Sleep(time.Duration(rng.IntN(10)) * time.Millisecond)
	}
}

func TestNoJobIsPutTwice(t *testing.T) {
	seeds, each := 3, 100/min(optest.RaceScale, 10)
	if testing.Short() {
		seeds, each = 1, min(each, 40)
	}
	all := optest.Holds(t, seeds, production{producers: 6, each: each}.play)
	if all.Success < all.Operations/2 {
		t.Errorf("too wild: %+v", all)
	}
}
