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
type production struct {
	seed            uint64
	producers, each int
}

func (w production) run(t *testing.T) (v optest.Verdicts) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Seed: w.seed, Latency: optest.Latencies(int64(w.seed))})
		if _, err := optimistic.Create(t.Context(), NewEntity[jobs](s.Table("bank"), "p", "log"), jobs{}, nil); err != nil {
			t.Fatal(err)
		}
		s.SetFaults(tableFaults(aztest.Op("Entity Group Transaction"))...)
		ctx, stop := context.WithCancel(context.Background())
		var mu sync.Mutex
		var producers, consumers sync.WaitGroup
		for i := range w.producers {
			producers.Go(func() {
				got := w.produce(s, i)
				mu.Lock()
				defer mu.Unlock()
				v.Add(got)
			})
		}
		for i := range 3 {
			consumers.Go(func() { w.consume(ctx, s, i) })
		}
		producers.Wait()
		stop()
		consumers.Wait()
	})
	return v
}

func (w production) consume(ctx context.Context, s *aztest.Service, me int) {
	client, rng := s.Table("bank"), rand.New(rand.NewPCG(w.seed, uint64(100+me)))
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

func (w production) produce(s *aztest.Service, i int) (v optest.Verdicts) {
	client, me := s.Table("bank"), fmt.Sprint("producer", i)
	applied, open := 0, 0
	for n := 1; n <= w.each; {
		found := 0
		o := &TransactOptions{Attempts: -1, Elapsed: -1, SendOptions: optimistic.SendOptions{TryTimeout: time.Second}}
		res, err := Transact(context.Background(), client, "p", putJob(me, n, &found), o)
		if found != applied && (open == 0 || found != open) {
			v.Violations = append(v.Violations, fmt.Sprintf("%s, job %d: found %d put last, want %d (or %d): %+v, %v", me, n, found, applied, open, res, err))
		}
		if found == open && open != 0 {
			applied = open
		}
		open = 0
		switch {
		case err == nil && !res.Changed:
			continue // another job waits
		case err == nil:
			v.Success++
			applied = n
		case errors.Is(err, optimistic.ErrOutcomeUnknown):
			v.Unknown++
			open = n
		case errors.Is(err, optimistic.ErrConflict):
			v.Conflict++
		default:
			v.Violations = append(v.Violations, fmt.Sprintf("%s, job %d: %v", me, n, err))
		}
		v.Operations++
		n++
	}
	return v
}

func TestNoJobIsPutTwice(t *testing.T) {
	var all optest.Verdicts
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for n := range seeds {
		seed := *optest.FirstSeed + n
		v := production{seed: seed, producers: 6, each: 100 / min(optest.RaceScale, 4)}.run(t)
		for _, violation := range v.Violations {
			t.Errorf("seed %d: %s", seed, violation)
		}
		all.Add(v)
	}
	t.Logf("%d jobs: %d put, %d conflicts, %d unknown", all.Operations, all.Success, all.Conflict, all.Unknown)
	if all.Success < all.Operations/2 {
		t.Errorf("too wild: %+v", all)
	}
}
