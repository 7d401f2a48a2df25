package sharded_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/sharded"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// inBlobs keeps the parts of counters in blobs, inEntities in entities, each in a partition of its own.
func inBlobs(s *aztest.Service) sharded.At {
	s.BlockBlob("box", "any") // makes the container
	box := s.Container("box")
	return func(name string) optimistic.Target[sharded.Part] {
		return blobs.NewJSON[sharded.Part](box.NewBlockBlobClient(name))
	}
}

func inEntities(s *aztest.Service) sharded.At {
	table := s.Table("counters")
	return func(name string) optimistic.Target[sharded.Part] {
		return tables.NewEntity[sharded.Part](table, name, "counter")
	}
}

var stores = map[string]func(*aztest.Service) sharded.At{"blobs": inBlobs, "entities": inEntities}

func open(t *testing.T, at sharded.At) *sharded.Counter {
	t.Helper()
	c, err := sharded.NewCounter("visits", at, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func made(t *testing.T, at sharded.At, shards int) *sharded.Counter {
	t.Helper()
	c := open(t, at)
	if ch, err := c.Create(t.Context(), shards); err != nil || !ch.Changed || ch.Shards != shards {
		t.Fatalf("create: %+v, %v", ch, err)
	}
	return c
}

// shardOf returns the name of a shard of the counter that there is.
func shardOf(t *testing.T, at sharded.At, shard int) string {
	t.Helper()
	v, err := optimistic.Read(t.Context(), at("visits"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return sharded.ShardName("visits", v.Value.Generation, shard)
}

func total(t *testing.T, c *sharded.Counter) int64 {
	t.Helper()
	sum, err := c.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sum.Value
}

// TestWhatACounterCosts asserts every request of an undisturbed counter, in blobs and in entities.
func TestWhatACounterCosts(t *testing.T) {
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(nil)
				at := store(s)
				c, other := open(t, at), open(t, at)
				ctx := t.Context()
				add := func(c *sharded.Counter, n int64) func() (int, error) {
					return func() (int, error) { res, err := c.Add(ctx, n, nil); return res.Requests, err }
				}
				change := func(ch sharded.Change, err error) (int, error) { return ch.Requests, err }
				get := func() (int, error) { sum, err := c.Get(ctx); return sum.Requests, err }
				for _, step := range []struct {
					what string
					run  func() (int, error)
					want int
				}{
					{"create", func() (int, error) { return change(c.Create(ctx, 4)) }, 5},
					{"create again", func() (int, error) { return change(other.Create(ctx, 9)) }, 1},
					{"the first add, the number of shards being known", add(c, 5), 2},
					{"add", add(c, 1), 1},
					{"a day without a call", func() (int, error) { bubble.Sleep(24 * time.Hour); return 0, nil }, 0},
					{"add after it", add(c, 2), 1},
					{"subtract", add(c, -9), 1},
					{"add nothing", add(c, 0), 0},
					{"the first add of another process", add(open(t, at), 10), 3},
					{"get", get, 4},
					{"delete", func() (int, error) { return change(c.Delete(ctx)) }, 6},
				} {
					s.Reset()
					reported, err := step.run()
					if sent := s.Requests(); err != nil || sent != step.want || reported != sent {
						t.Errorf("%s: sent %d requests and reported %d, want %d (%v):\n%v", step.what, sent, reported, step.want, err, s.Log())
					}
					if step.what == "get" {
						if got := total(t, c); got != 9 {
							t.Errorf("the sum is %d, want 9", got)
						}
					}
				}
				if _, err := c.Get(ctx); !errors.Is(err, optimistic.ErrNotFound) {
					t.Errorf("get after delete: %v, want ErrNotFound", err)
				}
			})
		})
	}
}

// TestAddsOfOneProcessShareRequests: goroutines of one process need no shards of their own.
func TestAddsOfOneProcessShareRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		c := made(t, inBlobs(s), 8)
		if _, err := c.Add(t.Context(), 1, nil); err != nil {
			t.Fatal(err)
		}
		s.SetFaults(aztest.Fault{Kind: aztest.Slow, Delay: 5e6})
		s.Reset()
		done := make(chan error)
		for range 100 {
			go func() { _, err := c.Add(t.Context(), 1, nil); done <- err }()
		}
		for range 100 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if sent := s.Requests(); sent > 2 {
			t.Errorf("100 concurrent adds sent %d requests, want at most 2", sent)
		}
		if got := total(t, c); got != 101 {
			t.Errorf("the sum is %d, want 101", got)
		}
	})
}

// TestProcessesFindShardsOfTheirOwn: fewer processes than there are shards end up without conflicts, at one request for each
// change.
func TestProcessesFindShardsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: optest.Latencies(3)})
		at := inBlobs(s)
		c := made(t, at, 8)
		done := make(chan int)
		const each = 600
		for range 5 {
			go func() {
				c, late := open(t, at), 0
				for n := range each {
					res, err := c.Add(t.Context(), 1, nil)
					if err != nil {
						t.Error(err)
					}
					if n >= each-20 {
						late += res.Requests
					}
				}
				done <- late
			}()
		}
		late := 0
		for range 5 {
			late += <-done
		}
		if late != 5*20 {
			t.Errorf("the last 100 adds of 5 processes on 8 shards sent %d requests, want 1 each", late)
		}
		if got := total(t, c); got != 5*each {
			t.Errorf("the sum is %d, want %d", got, 5*each)
		}
	})
}

func TestNamesOfShardsAreSpread(t *testing.T) {
	met, first := map[string]bool{}, map[byte]bool{}
	for shard := range 64 {
		name := sharded.ShardName("stats/visits", "k7q2m9xd", shard)
		if met[name] || shard > 0 && !strings.HasSuffix(name, fmt.Sprintf("-stats/visits-k7q2m9xd-%d", shard)) {
			t.Errorf("shard %d is %q", shard, name)
		}
		met[name], first[name[0]] = true, true
	}
	if len(first) < 12 || sharded.ShardName("stats/visits", "k7q2m9xd", 0) != "stats/visits" {
		t.Errorf("64 names begin with %d digits", len(first))
	}
	if got := sharded.ShardName("visits", "k7q2m9xd", 1); got != "70b93097-visits-k7q2m9xd-1" {
		t.Errorf("the name of a stored shard has changed: %s", got)
	}
}

func TestBadInputIsRefusedBeforeAnythingIsSent(t *testing.T) {
	s := aztest.New(nil)
	at := inBlobs(s)
	for name, run := range map[string]func() error{
		"the name has 0 bytes":    func() error { _, err := sharded.NewCounter("", at, nil); return err },
		"the name has 1001 bytes": func() error { _, err := sharded.NewCounter(strings.Repeat("x", 1001), at, nil); return err },
		"at is nil":               func() error { _, err := sharded.NewCounter("c", nil, nil); return err },
		`at("c") is nil`: func() error {
			_, err := sharded.NewCounter("c", func(string) optimistic.Target[sharded.Part] { return nil }, nil)
			return err
		},
		`the client of at("c") is nil`: func() error {
			_, err := sharded.NewCounter("c", func(string) optimistic.Target[sharded.Part] { return blobs.NewJSON[sharded.Part](nil) }, nil)
			return err
		},
		"Options.Elapsed: -1ns": func() error { _, err := sharded.NewCounter("c", at, &sharded.Options{Elapsed: -1}); return err },
		"Grace: -1ns": func() error {
			_, err := sharded.NewCounter("c", at, &sharded.Options{SendOptions: optimistic.SendOptions{Grace: -1}})
			return err
		},
		"counter: 0 shards; give 1":       func() error { _, err := open(t, at).Create(t.Context(), 0); return err },
		"counter: 1001 shards; give 1 to": func() error { _, err := open(t, at).Create(t.Context(), 1001); return err },
	} {
		if err := run(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q in it", err, name)
		}
	}
	if s.Requests() != 0 {
		t.Errorf("sent %v", s.Log())
	}
}

func TestWhatIsNoCounterIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		at, ctx := inBlobs(s), t.Context()
		c := open(t, at)
		if _, err := c.Add(ctx, 1, nil); !errors.Is(err, optimistic.ErrNotFound) {
			t.Errorf("add to no counter: %v", err)
		}
		optest.Put(t, s.BlockBlob("box", "visits"), `{"name":"something else"}`)
		for name, run := range map[string]func() error{
			"add":    func() error { _, err := c.Add(ctx, 1, nil); return err },
			"get":    func() error { _, err := c.Get(ctx); return err },
			"create": func() error { _, err := c.Create(ctx, 2); return err },
			"delete": func() error { _, err := c.Delete(ctx); return err },
		} {
			if err := run(); !errors.Is(err, sharded.ErrNoCounter) {
				t.Errorf("%s: %v, want ErrNoCounter", name, err)
			}
		}
		if got := optest.Get(t, s.BlockBlob("box", "visits")); got != `{"name":"something else"}` {
			t.Errorf("the blob is now %s", got)
		}
	})
}

// TestADeletionThatFailedIsCompleted: what is half deleted has no sum, takes no additions, and is not created over.
func TestADeletionThatFailedIsCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		at, ctx := inBlobs(s), t.Context()
		c, other := made(t, at, 3), open(t, at)
		if _, err := other.Add(ctx, 4, nil); err != nil {
			t.Fatal(err)
		}
		s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure", Match: aztest.Op("Delete Blob"), Skip: 1, Count: 1})
		if _, err := c.Delete(ctx); err == nil || errors.Is(err, optimistic.ErrNotFound) {
			t.Fatalf("%v, want the refusal", err)
		}
		for name, run := range map[string]func() error{
			"add":    func() error { _, err := c.Add(ctx, 1, nil); return err },
			"get":    func() error { _, err := c.Get(ctx); return err },
			"create": func() error { _, err := c.Create(ctx, 2); return err },
		} {
			deleting := &sharded.DeletingError{}
			if err := run(); !errors.As(err, &deleting) || !errors.Is(err, optimistic.ErrNotFound) {
				t.Errorf("%s: %v, want a DeletingError", name, err)
			}
		}
		if ch, err := c.Delete(ctx); err != nil || !ch.Changed {
			t.Fatalf("%+v, %v", ch, err)
		}
		if _, err := c.Create(ctx, 2); err != nil || total(t, c) != 0 {
			t.Errorf("the new counter: %v", err)
		}
	})
}

// TestNoSumLeavesItsRange: the sum of two shards could leave the range of int64, and then Get failed for everybody. Now an
// addition is refused long before.
func TestNoSumLeavesItsRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		at, ctx := inBlobs(s), context.Background()
		c := made(t, at, 2)
		for _, tt := range []struct {
			n       int64
			refused bool
		}{{math.MaxInt64, true}, {math.MinInt64, true}, {sharded.MaxPart, false}, {1, true}, {-sharded.MaxPart, false}, {-sharded.MaxPart, false}, {-1, true}, {sharded.MaxPart, false}, {sharded.MaxPart, false}} {
			_, err := c.Add(ctx, tt.n, nil)
			if refused := err != nil && strings.Contains(err.Error(), "is beyond the 9223372036854775 that a shard takes"); refused != tt.refused || !tt.refused && err != nil {
				t.Errorf("add %d: %v", tt.n, err)
			}
		}
		if got := total(t, c); got != sharded.MaxPart {
			t.Errorf("the sum is %d", got)
		}
		optest.Put(t, s.BlockBlob("box", shardOf(t, at, 1)), `{"n":9223372036854775807}`)
		if _, err := c.Get(ctx); err == nil || !strings.Contains(err.Error(), "shard 1 holds 9223372036854775807") {
			t.Errorf("%v, want the shard that somebody else has written", err)
		}
	})
}

// TestAnAdditionWithAnIDIsMadeOnce: also if another process makes it again.
func TestAnAdditionWithAnIDIsMadeOnce(t *testing.T) {
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			s := aztest.New(nil)
			at := store(s)
			c := made(t, at, 4)
			for i := range 3 {
				s.Reset()
				res, err := open(t, at).Add(t.Context(), 5, &sharded.AddOptions{OperationID: "order-17"})
				if want := 2 - min(i, 1); err != nil || res.AlreadyApplied != (i > 0) || res.Requests != want || s.Requests() != want {
					t.Errorf("%+v, %v, %d requests, want %d", res, err, s.Requests(), want)
				}
			}
			if got := total(t, c); got != 5 {
				t.Errorf("the sum is %d, want 5", got)
			}
		})
	}
}
