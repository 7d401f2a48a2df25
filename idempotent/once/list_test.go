package once

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

func TestKeysAreListedWithTheirStates(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		o := r.once(r.service)
		if keys, err := o.List(t.Context()); err != nil || len(keys) != 0 {
			t.Errorf("without a table: %v, %v", keys, err)
		}
		work := func(context.Context, *pessimistic.Hold) ([]byte, error) { return []byte("result"), nil }
		failed := errors.New("failed")
		long := strings.Repeat("ü", 99) // its escaped form does not fit into a row key
		for _, key := range []string{"done", "a/b ü!", long, "old"} {
			if _, err := o.Do(t.Context(), key, nil, work); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := o.Do(t.Context(), "failed", nil, func(context.Context, *pessimistic.Hold) ([]byte, error) { return nil, failed }); !errors.Is(err, failed) {
			t.Fatal(err)
		}
		if _, err := o.Forget(t.Context(), "old"); err != nil {
			t.Fatal(err)
		}
		run, err := o.Begin(t.Context(), "running", nil)
		if err != nil {
			t.Fatal(err)
		}
		list := func() string {
			t.Helper()
			keys, err := o.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, k := range keys {
				if k.Done == k.At.IsZero() || k.Lock.Name != "" && k.Lock.Owner == "" {
					t.Errorf("%+v", k)
				}
				all = append(all, fmt.Sprintf("%s done=%t held=%t lock=%t", strings.ReplaceAll(k.Key, long, "long"), k.Done, k.Lock.Held, k.Lock.Name != ""))
			}
			return strings.Join(all, "\n")
		}
		r.service.Reset()
		want := "a/b ü! done=true held=false lock=false\ndone done=true held=false lock=false\nfailed done=false held=false lock=true\n" +
			"running done=false held=true lock=true\nlong done=true held=false lock=false"
		if got := list(); got != want || r.service.Requests() != 2 {
			t.Errorf("%d requests, %v", r.service.Requests(), got)
		}
		if _, err := run.Finish(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := run.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		if _, err := o.locks.GC(t.Context(), &pessimistic.GCOptions{Unused: time.Minute}); err != nil {
			t.Fatal(err)
		}
		want = "a/b ü! done=true held=false lock=false\ndone done=true held=false lock=false\nrunning done=true held=false lock=false\nlong done=true held=false lock=false"
		if got := list(); got != want {
			t.Errorf("without locks: %v", got)
		}
		r.service.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure", Match: aztest.Op("Query Entities"), Count: 1})
		if keys, err := o.List(t.Context()); err == nil || keys != nil {
			t.Errorf("of a table that may not be read: %v, %v", keys, err)
		}
	})
}

// A key that is finished and released between the two looks is not listed as one that has failed.
func TestAKeyThatIsFinishedWhileKeysAreListedIsDone(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		run, err := r.once(r.service).Begin(t.Context(), "k", nil)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := r.once(&meanwhile{next: r.service, do: func() {
			if _, err := run.Finish(t.Context(), nil); err != nil {
				t.Error(err)
			}
			_ = run.Release(t.Context())
		}}).List(t.Context())
		if err != nil || len(keys) != 1 || !keys[0].Done {
			t.Errorf("%+v, %v", keys, err)
		}
	})
}
