package optimistic_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/observe"
)

// fold starts two updates of one document that share a write. It returns once both have run, or once the first one blocks
// in first. The second one has ctx.
func fold(t *testing.T, d *optimistic.Document[optest.Counter], ctx context.Context, first func(context.Context, *optest.Counter) error) (one, two chan error) {
	t.Helper()
	one, two = make(chan error, 1), make(chan error, 1)
	hold, held := make(chan struct{}), make(chan error, 1)
	go func() { // keeps the turn, so that the next two fold
		_, err := d.Update(context.Background(), func(context.Context, *optest.Counter) error {
			<-hold
			return optimistic.ErrSkip
		})
		held <- err
	}()
	synctest.Wait()
	bubble.Sleep(2 * time.Second)
	update := func(ctx context.Context, change func(context.Context, *optest.Counter) error, done chan error) {
		_, err := d.Update(ctx, change)
		done <- err
	}
	go update(context.Background(), first, one)
	synctest.Wait()
	go update(ctx, optest.Increment, two)
	synctest.Wait()
	close(hold)
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	return one, two
}

// TestACallerThatGivesUpDuringTheSharedWriteLearnsItsOutcome: the error that it got named Resolve, which said "conflict"
// of a write that was applied.
func TestACallerThatGivesUpDuringTheSharedWriteLearnsItsOutcome(t *testing.T) {
	for name, refused := range map[string]bool{"applied": false, "refused, and left out of the next write": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(&aztest.Options{Latency: func() time.Duration { return time.Second }})
				client := s.BlockBlob("box", "n.json")
				optest.Put(t, client, `{"n":0}`)
				ctx, cancel := context.WithCancel(t.Context())
				s.SetFaults(aztest.Fault{Kind: aztest.Slow, Match: aztest.Writes, Delay: 20 * time.Second, Count: 1})
				one, two := fold(t, open(t, s, nil), ctx, optest.Increment)
				bubble.Sleep(1500 * time.Millisecond) // the write is under way
				cancel()
				err := <-two
				unknown, ok := errors.AsType[*optimistic.UnknownError](err)
				if !ok {
					t.Fatalf("err = %v, want an unknown outcome", err)
				}
				if err := unknown.Resolve(t.Context()); !errors.Is(err, optimistic.ErrOutcomeUnknown) {
					t.Errorf("Resolve during the write = %v, want it still unknown", err)
				}
				want, n := error(nil), 2
				if refused {
					optest.Put(t, s.BlockBlob("box", "n.json"), `{"n":10}`)
					want, n = optimistic.ErrConflict, 11
				}
				if err := <-one; err != nil {
					t.Fatal(err)
				}
				s.Reset()
				if err := unknown.Resolve(t.Context()); !errors.Is(err, want) || s.Requests() != 0 {
					t.Errorf("Resolve after the write = %v with %d requests, want %v without one", err, s.Requests(), want)
				}
				if got := optest.Count(t, client); got != n {
					t.Errorf("n = %d, want %d", got, n)
				}
			})
		})
	}
}

// TestACallerThatGivesUpBeforeItsChangeIsSentIsNotUnknown: another caller's change of the same fold still runs.
func TestACallerThatGivesUpBeforeItsChangeIsSentIsNotUnknown(t *testing.T) {
	for name, firstBlocks := range map[string]bool{"it has not run": true, "it has run": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(&aztest.Options{Latency: func() time.Duration { return time.Second }})
				client := s.BlockBlob("box", "n.json")
				optest.Put(t, client, `{"n":0}`)
				d := open(t, s, nil)
				ctx, cancel := context.WithCancel(t.Context())
				blocks := func(ctx context.Context, c *optest.Counter) error {
					bubble.Sleep(time.Minute)
					return optest.Increment(ctx, c)
				}
				var gaveUp, other chan error
				if firstBlocks {
					other, gaveUp = fold(t, d, ctx, blocks)
				} else {
					gaveUp = make(chan error, 1)
					hold := make(chan struct{})
					go func() {
						_, _ = d.Update(context.Background(), func(context.Context, *optest.Counter) error { <-hold; return optimistic.ErrSkip })
					}()
					synctest.Wait()
					bubble.Sleep(2 * time.Second)
					go func() { // does the work for all, so it cannot leave
						_, _ = d.Update(context.Background(), func(context.Context, *optest.Counter) error { return optimistic.ErrSkip })
					}()
					synctest.Wait()
					go func() { _, err := d.Update(ctx, optest.Increment); gaveUp <- err }()
					synctest.Wait()
					other = make(chan error, 1)
					go func() { _, err := d.Update(context.Background(), blocks); other <- err }()
					synctest.Wait()
					close(hold)
				}
				bubble.Sleep(10 * time.Second)
				began := time.Now()
				cancel()
				if err := <-gaveUp; !errors.Is(err, context.Canceled) || errors.Is(err, optimistic.ErrOutcomeUnknown) {
					t.Errorf("err = %v, want that of its context", err)
				}
				if waited := time.Since(began); waited > 0 {
					t.Errorf("it waited %v", waited)
				}
				if err := <-other; err != nil {
					t.Error(err)
				}
				if got := optest.Count(t, client); got != 1 {
					t.Errorf("n = %d, want only the other's change", got)
				}
			})
		})
	}
}

// TestADocumentReadsAgainWhenItsValueIsOld: the ETag does not notice index tags that others have set, and a write of the
// content removes them.
func TestADocumentReadsAgainWhenItsValueIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":0}`)
		d := open(t, s, nil)
		tagged := func(rest time.Duration) string {
			if _, err := d.Update(t.Context(), optest.Increment); err != nil {
				t.Fatal(err)
			}
			bubble.Sleep(rest)
			if _, err := client.SetTags(t.Context(), map[string]string{"state": "ready"}, nil); err != nil {
				t.Fatal(err)
			}
			s.Reset()
			res, err := d.Update(t.Context(), optest.Increment)
			if err != nil {
				t.Fatal(err)
			}
			want := 1
			if rest > time.Minute {
				want = 3 // the content, its tags, and the write
			}
			optest.Requests(t, s, res, want)
			return optest.TagsOf(t, client.BlobClient())["state"]
		}
		if got := tagged(2 * time.Minute); got != "ready" {
			t.Errorf("after 2 minutes the tag is %q, want it kept", got)
		}
		if _, err := client.SetTags(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := tagged(time.Second); got != "" {
			t.Errorf("after a second the tag is %q: the doc comment promises too little", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s, _ := optest.Quiet(t, `{"n":0}`)
		d := open(t, s, &optimistic.DocumentOptions{MaxAge: -1})
		for range 3 {
			s.Reset()
			res, err := d.Update(t.Context(), optest.Increment)
			if err != nil {
				t.Fatal(err)
			}
			optest.Requests(t, s, res, 2)
		}
	})
}

// TestAChangeThatUsesItsOwnDocumentIsTold: the change, and a hook of its request, waited for the fold in which they ran,
// until their context ended.
func TestAChangeThatUsesItsOwnDocumentIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":0}`)
		var d *optimistic.Document[optest.Counter]
		var update, read, hooked error
		hooks := observe.Hooks{Span: func(ctx context.Context, span observe.Span) (context.Context, func(error)) {
			if span.Request != nil && hooked == nil {
				_, hooked = d.Read(ctx)
			}
			return ctx, func(error) {}
		}}
		d, err := optimistic.NewDocument(blobs.NewJSON[optest.Counter](client), &optimistic.DocumentOptions{
			Update: optimistic.UpdateOptions{SendOptions: optimistic.SendOptions{Hooks: hooks}},
		})
		if err != nil {
			t.Fatal(err)
		}
		other := open(t, s, nil)
		_, err = d.Update(t.Context(), func(ctx context.Context, c *optest.Counter) error {
			if _, err := other.Read(ctx); err != nil { // another document is fine
				return err
			}
			_, update = other.Update(ctx, func(ctx context.Context, _ *optest.Counter) error {
				return optest.ErrorOf(d.Update(ctx, optest.Increment))
			})
			_, read = d.Read(ctx)
			c.N++
			return nil
		})
		if n := optest.Count(t, client); err != nil || n != 1 {
			t.Errorf("n = %d, %v", n, err)
		}
		for name, err := range map[string]error{"an update in the change of another document": update, "a read": read, "a read in a hook": hooked} {
			if err == nil || !strings.Contains(err.Error(), "its own Document") {
				t.Errorf("%s: %v, want an error that names the fault", name, err)
			}
		}
	})
}
