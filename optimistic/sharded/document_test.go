package sharded_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/sharded"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// tally counts how often each name was put in.
type tally = map[string]int

func together(a, b tally) tally {
	a = maps.Clone(a)
	for name, n := range b {
		a[name] += n
	}
	return a
}

// tallies returns how to open a document in blobs, as another process does.
func tallies(t *testing.T, s *aztest.Service) func() *sharded.Document[tally] {
	t.Helper()
	s.BlockBlob("box", "any") // makes the container
	box := s.Container("box")
	return func() *sharded.Document[tally] {
		d, err := sharded.NewDocument("seen", func(name string) optimistic.Target[sharded.Share[tally]] {
			return blobs.NewJSON[sharded.Share[tally]](box.NewBlockBlobClient(name))
		}, together, nil)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

func put(ctx context.Context, d *sharded.Document[tally], name string) (optimistic.Result, error) {
	return d.Update(ctx, func(_ context.Context, shard *tally) error {
		if *shard == nil {
			*shard = tally{}
		}
		(*shard)[name]++
		return nil
	})
}

func merged(t *testing.T, d *sharded.Document[tally]) tally {
	t.Helper()
	m, err := d.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m.Value
}

// TestWhatADocumentCosts asserts every request of an undisturbed document.
func TestWhatADocumentCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		open, ctx := tallies(t, s), t.Context()
		d := open()
		change := func(ch sharded.Change, err error) (int, error) { return ch.Requests, err }
		update := func(d *sharded.Document[tally]) func() (int, error) {
			return func() (int, error) { res, err := put(ctx, d, "a"); return res.Requests, err }
		}
		for _, step := range []struct {
			what string
			run  func() (int, error)
			want int
		}{
			{"create", func() (int, error) { return change(d.Create(ctx, 4)) }, 5},
			{"create again", func() (int, error) { return change(open().Create(ctx, 9)) }, 1},
			{"the first update, the number of shards being known", update(d), 2},
			{"update", update(d), 1},
			{"a day without a call", func() (int, error) { bubble.Sleep(24 * time.Hour); return 0, nil }, 0},
			{"update after it", update(d), 1},
			{"the first update of another process", update(open()), 3},
			{"get", func() (int, error) { m, err := d.Get(ctx); return m.Requests, err }, 4},
			{"grow", func() (int, error) { return change(d.Grow(ctx, 6)) }, 5},
			{"get", func() (int, error) { m, err := d.Get(ctx); return m.Requests, err }, 6},
			{"delete", func() (int, error) { return change(d.Delete(ctx)) }, 8},
		} {
			s.Reset()
			reported, err := step.run()
			if sent := s.Requests(); err != nil || sent != step.want || reported != sent {
				t.Errorf("%s: sent %d requests and reported %d, want %d (%v):\n%v", step.what, sent, reported, step.want, err, s.Log())
			}
			if step.what == "get" {
				if got := merged(t, d)["a"]; got != 4 {
					t.Errorf("merged: %d, want 4", got)
				}
			}
		}
		if _, err := d.Get(ctx); !errors.Is(err, optimistic.ErrNotFound) {
			t.Errorf("get after delete: %v, want ErrNotFound", err)
		}
	})
}

// TestADocumentIsExactWithOneAnswerInFiveLost: each name of each process is in the merged value once, while shards are added
// and every fifth answer to a write is lost. At most one in a hundred is left open.
func TestADocumentIsExactWithOneAnswerInFiveLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Seed: 4, Latency: optest.Latencies(4)})
		open := tallies(t, s)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Probability: 0.2})
		d := open()
		if _, err := d.Create(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		const processes, each = 6, 20
		var mu sync.Mutex
		ambiguous, unknown := 0, ""
		var wg sync.WaitGroup
		for i := range processes {
			wg.Go(func() {
				d := open()
				for n := range each {
					name := fmt.Sprintf("%d/%d", i, n)
					res, err := put(t.Context(), d, name)
					mu.Lock()
					ambiguous += res.Ambiguous
					if errors.Is(err, optimistic.ErrOutcomeUnknown) && unknown == "" { // of 120
						unknown = name
					} else if err != nil {
						t.Errorf("update: %v", err)
					}
					mu.Unlock()
				}
			})
		}
		wg.Go(func() {
			for shards := 3; shards <= 6; shards++ {
				bubble.Sleep(200 * time.Millisecond)
				if _, err := open().Grow(t.Context(), shards); err != nil {
					t.Errorf("grow: %v", err)
				}
			}
		})
		wg.Wait()
		got := merged(t, d)
		for name, n := range got {
			if n != 1 && name != unknown || n > 1 {
				t.Errorf("%s is in the value %d times", name, n)
			}
		}
		if got[unknown] == 0 && unknown != "" {
			got[unknown] = 0 // it was not applied, which nothing proves
		}
		if len(got) != processes*each || ambiguous < 10 {
			t.Errorf("%d names, want %d; %d answers were lost", len(got), processes*each, ambiguous)
		}
		var m sharded.Merged[tally]
		if m, _ = d.Get(t.Context()); m.Shards != 6 {
			t.Errorf("%d shards, want 6", m.Shards)
		}
	})
}

// TestAChangeThatFailsLeavesNothing: what it has done to the shard before it failed is not written, also not by a call that
// shares the write.
func TestAChangeThatFailsLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open, ctx := tallies(t, aztest.New(nil)), t.Context()
		d := open()
		if _, err := d.Create(ctx, 2); err != nil {
			t.Fatal(err)
		}
		refused := errors.New("refused")
		var wg sync.WaitGroup
		for n := range 10 {
			wg.Go(func() {
				if n%2 == 0 {
					if _, err := put(ctx, d, "kept"); err != nil {
						t.Error(err)
					}
					return
				}
				if _, err := d.Update(ctx, func(_ context.Context, shard *tally) error {
					if *shard == nil {
						*shard = tally{}
					}
					(*shard)["dropped"]++
					return refused
				}); !errors.Is(err, refused) {
					t.Errorf("%v, want the error of the change", err)
				}
			})
		}
		wg.Wait()
		if got := merged(t, open()); len(got) != 1 || got["kept"] != 5 {
			t.Errorf("%v, want 5 kept and nothing else", got)
		}
	})
}

// TestAnEmptyDocumentIsTheZeroValue: merge is not called for shards without a value.
func TestAnEmptyDocumentIsTheZeroValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := tallies(t, aztest.New(nil))()
		if _, err := d.Create(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		if got := merged(t, d); got != nil {
			t.Errorf("%v, want nothing", got)
		}
	})
}

func TestWhatIsNoDocumentIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		d, ctx := tallies(t, s)(), t.Context()
		optest.Put(t, s.BlockBlob("box", "seen"), `{"name":"something else"}`)
		for name, run := range map[string]func() error{
			"update": func() error { return optest.ErrorOf(put(ctx, d, "a")) },
			"get":    func() error { return optest.ErrorOf(d.Get(ctx)) },
			"create": func() error { return optest.ErrorOf(d.Create(ctx, 2)) },
			"grow":   func() error { return optest.ErrorOf(d.Grow(ctx, 2)) },
			"delete": func() error { return optest.ErrorOf(d.Delete(ctx)) },
		} {
			if err := run(); !errors.Is(err, sharded.ErrNoDocument) {
				t.Errorf("%s: %v, want ErrNoDocument", name, err)
			}
		}
		optest.Put(t, s.BlockBlob("box", sharded.Name("other", 1)), `{"value":{"left":1}}`)
		other, err := sharded.NewDocument("other", func(name string) optimistic.Target[sharded.Share[tally]] {
			return blobs.NewJSON[sharded.Share[tally]](s.BlockBlob("box", name))
		}, together, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Create(ctx, 2); !errors.Is(err, sharded.ErrNoDocument) {
			t.Errorf("a shard with content was adopted: %v", err)
		}
	})
}

func TestBadInputOfADocumentIsRefusedBeforeAnythingIsSent(t *testing.T) {
	s := aztest.New(nil)
	d := tallies(t, s)()
	at := func(string) optimistic.Target[sharded.Share[tally]] { return nil }
	for want, run := range map[string]func() error{
		"merge is nil":                   func() error { return optest.ErrorOf(sharded.NewDocument("d", at, nil, nil)) },
		"document: the name has 0 bytes": func() error { return optest.ErrorOf(sharded.NewDocument("", at, together, nil)) },
		`document: at("d") is nil`:       func() error { return optest.ErrorOf(sharded.NewDocument("d", at, together, nil)) },
		"document: at is nil":            func() error { return optest.ErrorOf(sharded.NewDocument("d", nil, together, nil)) },
		"change is nil":                  func() error { return optest.ErrorOf(d.Update(t.Context(), nil)) },
		"document: 0 shards":             func() error { return optest.ErrorOf(d.Create(t.Context(), 0)) },
	} {
		if err := run(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if s.Requests() != 0 {
		t.Errorf("sent %v", s.Log())
	}
}
