package sharded_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/sharded"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/retry"
)

// TestAReaderOutlivesACounterWithMoreShards reads a counter that another process has deleted and made again with fewer.
func TestAReaderOutlivesACounterWithMoreShards(t *testing.T) {
	s := aztest.New(nil)
	at := inBlobs(s)
	reader, other := made(t, at, 4), open(t, at)
	total(t, reader)
	if _, err := other.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Create(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Add(t.Context(), 7, nil); err != nil {
		t.Fatal(err)
	}
	s.Reset()
	if sum, err := reader.Get(t.Context()); err != nil || sum.Value != 7 || sum.Shards != 2 || sum.Requests != 5 || s.Requests() != 5 {
		t.Errorf("%+v, %v, %d requests; want 7 in 2 shards for 4 reads of what it knew and 1 more of what there is", sum, err, s.Requests())
	}
}

// TestAWriterOutlivesACounterWithMoreShards adds to a counter that another process has deleted and made again with fewer: the
// shard that the writer knows is gone, and the counter is not.
func TestAWriterOutlivesACounterWithMoreShards(t *testing.T) {
	s := aztest.New(nil)
	at := inBlobs(s)
	ctx := retry.WithRandom(t.Context(), func() float64 { return 0.9 }) // chooses the last shard
	writer, other := made(t, at, 4), open(t, at)
	if _, err := writer.Add(ctx, 5, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Delete(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Add(ctx, 1, nil); !errors.Is(err, optimistic.ErrNotFound) {
		t.Errorf("an addition to a deleted counter: %v", err)
	}
	writer = open(t, at)
	for _, err := range []error{optest.ErrorOf(other.Create(ctx, 4)), optest.ErrorOf(writer.Add(ctx, 5, nil)), optest.ErrorOf(other.Delete(ctx)), optest.ErrorOf(other.Create(ctx, 2))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Reset()
	if res, err := writer.Add(ctx, 7, nil); err != nil || !res.Changed || res.Requests != s.Requests() {
		t.Errorf("%+v, %v; sent %v", res, err, s.Log())
	}
	if sum := total(t, writer); sum != 7 {
		t.Errorf("the sum is %d, want 7", sum)
	}
}

// TestAMissingShardIsNamed: a shard that was deleted is not a counter that is not there.
func TestAMissingShardIsNamed(t *testing.T) {
	s := aztest.New(nil)
	at, ctx := inBlobs(s), retry.WithRandom(t.Context(), func() float64 { return 0.9 })
	made(t, at, 2)
	lost := shardOf(t, at, 1)
	if _, err := s.BlockBlob("box", lost).Delete(ctx, nil); err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]func(*sharded.Counter) error{
		"get": func(c *sharded.Counter) error { return optest.ErrorOf(c.Get(ctx)) },
		"add": func(c *sharded.Counter) error { return optest.ErrorOf(c.Add(ctx, 1, nil)) },
	} {
		c := open(t, at)
		for range 2 {
			if err := run(c); !errors.Is(err, sharded.ErrIncomplete) || errors.Is(err, optimistic.ErrNotFound) || !strings.Contains(err.Error(), lost) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	optest.Put(t, s.BlockBlob("box", lost), "{}") // as the error advises
	if _, err := open(t, at).Add(ctx, 1, nil); err != nil || total(t, open(t, at)) != 1 {
		t.Errorf("add to the shard that was put back: %v", err)
	}
}

// TestWhatAnEarlierCounterLeftIsNotAddedTo: a process knew 8 shards; the counter was deleted, a Create of 8 failed at its last
// request, and one of 4 succeeded. Half of the additions of that process went to shards of no counter, though each returned nil.
func TestWhatAnEarlierCounterLeftIsNotAddedTo(t *testing.T) {
	s := aztest.New(nil)
	at, ctx := inBlobs(s), t.Context()
	for shard := range 8 { // so that it has been in each of them
		writer, other := made(t, at, 8), open(t, at)
		last := retry.WithRandom(ctx, func() float64 { return (float64(shard) + 0.5) / 8 })
		if _, err := writer.Add(last, 1, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Delete(ctx); err != nil {
			t.Fatal(err)
		}
		s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure", Match: func(r *aztest.Request) bool {
			return aztest.Writes(r) && r.Resource == "box/visits"
		}})
		if _, err := other.Create(ctx, 8); err == nil {
			t.Fatal("created without its first shard")
		}
		s.SetFaults()
		if _, err := other.Create(ctx, 4); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if _, err := writer.Add(ctx, 1, nil); err != nil {
				t.Fatal(err)
			}
		}
		if sum := total(t, other); sum != 10 {
			t.Errorf("a writer of shard %d: the sum is %d after 10 additions that returned nil", shard, sum)
		}
		if _, err := other.Delete(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// TestALateDeleteSparesItsSuccessor: a Delete is slow at one of its requests, whichever; another process deletes the counter and
// creates one, with as many shards, to which a third adds. The late Delete removed the new counter or some of its shards.
func TestALateDeleteSparesItsSuccessor(t *testing.T) {
	for skip := range 4 { // the mark, two shards, and the first
		t.Run(fmt.Sprint(skip), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(nil)
				at, ctx := inBlobs(s), t.Context()
				late, other := made(t, at, 3), open(t, at)
				s.SetFaults(aztest.Fault{Kind: aztest.Slow, Delay: time.Second, Match: aztest.Writes, Skip: skip, Count: 1})
				done := make(chan error)
				go func() { done <- optest.ErrorOf(late.Delete(ctx)) }()
				bubble.Sleep(time.Millisecond)
				if _, err := other.Delete(ctx); err != nil {
					t.Fatal(err)
				}
				successor := made(t, at, 3)
				for shard := range 3 {
					in := retry.WithRandom(ctx, func() float64 { return (float64(shard) + 0.5) / 3 })
					if _, err := open(t, at).Add(in, 1, nil); err != nil {
						t.Fatal(err)
					}
				}
				// Where only its mark was late, the new counter is the one that is there to be deleted.
				if err := <-done; err != nil && !errors.Is(err, optimistic.ErrNotFound) {
					t.Errorf("the late deletion: %v", err)
				} else if sum, getErr := successor.Get(ctx); err == nil && skip > 0 && (getErr != nil || sum.Value != 3) {
					t.Errorf("the new counter: %+v, %v; want 3", sum, getErr)
				}
			})
		})
	}
}

// TestACreateAfterALostAnswerHasAllShards: the answer to its last request was lost, and another process has deleted the counter that
// the request made before it is sent again.
func TestACreateAfterALostAnswerHasAllShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		at, ctx := inBlobs(s), retry.WithRandom(t.Context(), func() float64 { return 0.5 })
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Count: 1, Match: func(r *aztest.Request) bool {
			return aztest.Writes(r) && r.Resource == "box/visits"
		}})
		done := make(chan error)
		go func() { done <- optest.ErrorOf(open(t, at).Create(ctx, 3)) }()
		bubble.Sleep(time.Millisecond)
		if ch, err := open(t, at).Delete(ctx); err != nil || !ch.Changed {
			t.Fatalf("%+v, %v: the counter is to be deleted while its creator waits", ch, err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if sum, err := open(t, at).Get(ctx); err != nil || sum.Shards != 3 {
			t.Errorf("%+v, %v; want a counter with 3 shards", sum, err)
		}
	})
}

// TestACreateAfterALostAnswerMakesNewShards: the counter that the lost request made was deleted, by two processes, of which one is
// slow. It removed the shards of the counter that was created then, with what had been added to them: they had the same names.
func TestACreateAfterALostAnswerMakesNewShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		at, ctx := inBlobs(s), retry.WithRandom(t.Context(), func() float64 { return 0.5 })
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Count: 1, Match: func(r *aztest.Request) bool {
			return aztest.Writes(r) && r.Resource == "box/visits"
		}}, aztest.Fault{Kind: aztest.Slow, Count: 2, Delay: 20 * time.Second, Match: aztest.Op("Delete Blob")})
		done, slow := make(chan error), make(chan error)
		go func() { done <- optest.ErrorOf(open(t, at).Create(ctx, 3)) }()
		bubble.Sleep(time.Millisecond)
		go func() { slow <- optest.ErrorOf(open(t, at).Delete(ctx)) }()
		bubble.Sleep(time.Millisecond)
		if _, err := open(t, at).Delete(ctx); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for range 6 { // to each shard
			if err := optest.ErrorOf(open(t, at).Add(t.Context(), 1, nil)); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-slow; err != nil {
			t.Fatal(err)
		}
		if sum, err := open(t, at).Get(ctx); err != nil || sum.Shards != 3 || sum.Value != 6 {
			t.Errorf("%+v, %v; want 6 in 3 shards:\n%v", sum, err, s.Log())
		}
	})
}

// TestOfTwoThatCreateACounterOneLeavesNothing: the slower one removes the shards that it has made.
func TestOfTwoThatCreateACounterOneLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: optest.Latencies(1)})
		at := inBlobs(s)
		done := make(chan sharded.Change)
		for range 2 {
			go func() {
				ch, err := open(t, at).Create(t.Context(), 4)
				if err != nil {
					t.Error(err)
				}
				done <- ch
			}()
		}
		a, b := <-done, <-done
		if a.Changed == b.Changed || a.Requests+b.Requests != s.Requests() {
			t.Errorf("%+v and %+v, %d requests; want one to have created it", a, b, s.Requests())
		}
		found := 0
		for pages := s.Container("box").NewListBlobsFlatPager(nil); pages.More(); {
			page, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			found += len(page.Segment.BlobItems)
		}
		if found != 4 {
			t.Errorf("%d blobs are there, want 4", found)
		}
	})
}
