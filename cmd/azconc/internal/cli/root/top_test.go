package root

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/shared"
	"github.com/azconc/azconc/pkg/aztest"
)

// busy returns a service on which a lock is held and another was, two slots of a semaphore are held and one was, a queue has three
// messages and its poison queue one. What it starts ends with the test.
func busy(t *testing.T) *aztest.Service {
	t.Helper()
	s := aztest.New(nil)
	for _, args := range []string{"container create jobs", "queue create orders", "queue create orders-poison", "queue create mail"} {
		if r := runOn(t.Context(), s, nil, nil, strings.Fields(args)...); r.code != 0 {
			t.Fatal(args, r)
		}
	}
	locker, err := pessimistic.NewLocker(s.Container("jobs"), &pessimistic.LockerOptions{Owner: "web-1"})
	if err != nil {
		t.Fatal(err)
	}
	// What is held is released at the end, in a context that is still alive then.
	ctx, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	held, err := locker.Lock(ctx, "nightly", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Release(ctx) })
	if err := locker.Do(ctx, "report", nil, func(context.Context, *pessimistic.Hold) error { return nil }); err != nil {
		t.Fatal(err)
	}
	sem, err := shared.NewSemaphore(locker, "encoders", 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		slot, err := sem.Acquire(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			defer func() { _ = slot.Release(ctx) }()
			continue
		}
		t.Cleanup(func() { _ = slot.Release(ctx) })
	}
	for queue, n := range map[string]int{"orders": 3, "orders-poison": 1} {
		for range n {
			if _, err := s.Queue(queue).EnqueueMessage(ctx, "text", nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	synctest.Wait()
	return s
}

func TestTopShowsWhatTheServiceSaysAndCountsItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := busy(t)
		for _, c := range []struct {
			args     string
			requests int
			has      []string
			hasNot   []string
		}{
			// 1 page of containers, 1 of queues, 1 for the locks of jobs, 2 for each of the queues
			{"top", 2 + 1 + 3*2, []string{"held ", " jobs/nightly ", "last web-1", "2 of 3 ", "  slot ", "      ~3        3  orders\n      ~1        1    poison: orders-poison\n"}, nil},
			{"top jobs", 1, []string{"jobs/nightly", "jobs/encoders"}, []string{"orders", "MESSAGES"}},
			{"top --queue orders", 4, []string{"orders-poison"}, []string{"nightly", "mail"}},
			{"top --queue mail", 3, []string{"mail"}, []string{"poison"}},
		} {
			before := s.Requests()
			r := runOn(t.Context(), s, nil, nil, strings.Fields(c.args)...)
			if sent := s.Requests() - before; r.code != 0 || sent != c.requests {
				t.Errorf("azconc %s: exit %d, %d requests, want %d: %s", c.args, r.code, sent, c.requests, r.stderr)
			}
			for _, want := range c.has {
				if !strings.Contains(r.out, want) {
					t.Errorf("azconc %s: %q is not in\n%s", c.args, want, r.out)
				}
			}
			for _, no := range c.hasNot {
				if strings.Contains(r.out, no) {
					t.Errorf("azconc %s: %q is in\n%s", c.args, no, r.out)
				}
			}
		}
		v := runOn(t.Context(), s, nil, nil, "top", "-o", "json").json(t)
		if v["requests"] != 9.0 || len(v["locks"].([]any)) != 2 || len(v["queues"].([]any)) != 2 {
			t.Errorf("%v", v)
		}
	})
}

// TestARoundOf20LocksAnd20QueuesIs43Requests: the lists of containers and of queues, 1 for all locks, and 2 for each queue. How many
// rounds there are in a minute is tested with the screen.
func TestARoundOf20LocksAnd20QueuesIs43Requests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		if _, err := s.Container("jobs").Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		locker, err := pessimistic.NewLocker(s.Container("jobs"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			if err := locker.Do(t.Context(), fmt.Sprint("lock-", i), nil, func(context.Context, *pessimistic.Hold) error { return nil }); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Queue(fmt.Sprint("queue-", i)).Create(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		before := s.Requests()
		v := runOn(t.Context(), s, nil, nil, "top", "-o", "json").json(t)
		if sent := s.Requests() - before; sent != 43 || len(v["locks"].([]any)) != 20 || len(v["queues"].([]any)) != 20 {
			t.Errorf("%d requests, want 43: %v", sent, v)
		}
	})
}

// A part that fails leaves the others as they are.
func TestTopShowsWhatItKnowsWhenTheServiceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := busy(t)
		wire := transport(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "orders") {
				return nil, errors.New("dial tcp: connection refused")
			}
			return s.Do(r)
		})
		r := runOn(t.Context(), wire, nil, nil, strings.Fields("top jobs --queue orders")...)
		if r.code != fail.ExitFailed || !strings.Contains(r.out, "nightly") || strings.Contains(r.out, "orders") || !strings.Contains(r.stderr, "queue orders: dial tcp: connection refused") ||
			!strings.Contains(r.stderr, "1 part could not be seen") {
			t.Errorf("one part fails: exit %d, %s%s", r.code, r.out, r.stderr)
		}
		v := runOn(t.Context(), wire, nil, nil, strings.Fields("top jobs --queue orders -o json")...).json(t)
		if v["outcome"] != "failed" || len(v["locks"].([]any)) != 2 || len(v["errors"].([]any)) != 1 {
			t.Errorf("one part fails: %v", v)
		}
		v = runOn(t.Context(), wire, nil, nil, strings.Fields("top --queue orders -o json")...).json(t)
		if v["outcome"] != "failed" || v["exit_code"] != 1.0 {
			t.Errorf("no part is known: %v", v)
		}
	})
}

func TestANameDoesNotBreakATable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		if r := runOn(t.Context(), s, nil, nil, "container", "create", "jobs"); r.code != 0 {
			t.Fatal(r)
		}
		locker, err := pessimistic.NewLocker(s.Container("jobs"), &pessimistic.LockerOptions{Owner: "a\nb\x1b[2J\u202e"})
		if err != nil {
			t.Fatal(err)
		}
		if err := locker.Do(t.Context(), "日本語\u200d", nil, func(context.Context, *pessimistic.Hold) error { return nil }); err != nil {
			t.Fatal(err)
		}
		r := runOn(t.Context(), s, nil, nil, "top", "jobs")
		if r.code != 0 || strings.Count(r.out, "\n") != 2 || !strings.Contains(r.out, "jobs/日本語\ufffd") || !strings.Contains(r.out, "last a b\ufffd[2J\ufffd") {
			t.Errorf("exit %d, %q", r.code, r.out)
		}
	})
}

func TestAWrongFlagOfTopSendsNothing(t *testing.T) {
	for args, want := range map[string]string{
		"top jobs/a":                        "jobs/a",
		"top jobs jobs":                     "jobs is named twice",
		"top --queue orders --queue orders": "--queue orders is given twice",
		"top --queue Orders":                "--queue",
		"top --interval 100ms":              "--interval 100ms is less than 1s",
	} {
		if r := runOn(t.Context(), silent(t), nil, nil, strings.Fields(args)...); r.code != fail.ExitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("azconc %s: exit %d, %s", args, r.code, r.stderr)
		}
	}
}
