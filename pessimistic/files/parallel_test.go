package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
)

// farWorld is a service at a distance, with a file of this content.
func farWorld(t *testing.T, content []byte, test func(t *testing.T, s *aztest.Service, f *file.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 5 * time.Millisecond }})
		f := s.File("box", "f")
		fill(t, s, f, content)
		test(t, s, f)
	})
}

// inFlight counts the requests of a kind that are under way together, and reports the most.
func inFlight(most *atomic.Int64, name string) observe.Hooks {
	var now atomic.Int64
	return observe.Hooks{Span: func(ctx context.Context, s observe.Span) (context.Context, func(error)) {
		if s.Name != name {
			return ctx, nil
		}
		for n := now.Add(1); ; {
			if was := most.Load(); n <= was || most.CompareAndSwap(was, n) {
				break
			}
		}
		return ctx, func(error) { now.Add(-1) }
	}}
}

// The first range is alone, and the other 16 are four at a time: 5 round trips instead of 17, and those of the lease.
func TestRangesAreReadAndWrittenAFewAtATime(t *testing.T) {
	old, content := patterned(17*testSpan, 1), patterned(17*testSpan, 2)
	const trip = 5 * time.Millisecond
	for _, tt := range []struct{ parallel, inFlight, trips int }{{1, 1, 17}, {0, 4, 5}, {16, 16, 2}} {
		farWorld(t, old, func(t *testing.T, s *aztest.Service, f *file.Client) {
			var most atomic.Int64
			var b bytes.Buffer
			began := time.Now()
			got, err := Download(t.Context(), f, &b, &DownloadOptions{ranges: ranges{testSpan, tt.parallel}, Hooks: inFlight(&most, "Get File")})
			if took := time.Since(began); err != nil || !bytes.Equal(b.Bytes(), old) || got.Requests != 17 || took != time.Duration(tt.trips)*trip || int(most.Load()) != tt.inFlight {
				t.Errorf("read, %d in parallel: %d bytes, %+v, %v in %v, %d at a time", tt.parallel, b.Len(), got, err, took, most.Load())
			}
			most.Store(0)
			began = time.Now()
			out, err := Upload(t.Context(), f, bytes.NewReader(content), int64(len(content)), &UploadOptions{ranges: ranges{testSpan, tt.parallel}, Hooks: inFlight(&most, "Put Range")})
			if took := time.Since(began); err != nil || out.Requests != 17+5 || out.Ranges != 17 || took != time.Duration(tt.trips+5)*trip || int(most.Load()) != tt.inFlight {
				t.Errorf("upload, %d in parallel: %+v, %v in %v, %d at a time", tt.parallel, out, err, took, most.Load())
			}
			most.Store(0)
			began = time.Now()
			out, err = Update(t.Context(), f, to(old), &UpdateOptions{ranges: ranges{testSpan, tt.parallel}, Hooks: inFlight(&most, "Put Range")})
			if took := time.Since(began); err != nil || out.Requests != 2*17+4 || took != time.Duration(2*tt.trips+4)*trip || int(most.Load()) != tt.inFlight || !bytes.Equal(stored(t, s, f), old) {
				t.Errorf("update, %d in parallel: %+v, %v in %v, %d at a time", tt.parallel, out, err, took, most.Load())
			}
		})
	}
}

// A fault of any range, while others are under way, costs one more request and changes nothing else.
func TestAFaultOfOneRangeOfManyCostsOneRequest(t *testing.T) {
	old, content := patterned(9*testSpan+5, 1), patterned(9*testSpan+5, 2)
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.LoseRequest, aztest.CutAnswer, aztest.Throttle, aztest.FailAfterCommit, aztest.Page} {
		for k := range 10 {
			farWorld(t, old, func(t *testing.T, s *aztest.Service, f *file.Client) {
				fault := aztest.Fault{Kind: kind, Skip: k, Count: 1, Match: aztest.Op("Get File")}
				s.SetFaults(fault)
				var b bytes.Buffer
				got, err := Download(t.Context(), f, &b, &DownloadOptions{ranges: ranges{span: testSpan}})
				if err != nil || !bytes.Equal(b.Bytes(), old) || got.Requests != 11 || s.Requests() != 11 {
					t.Errorf("%s at %d: read %+v, %v", kind, k, got, err)
				}
				s.Reset()
				fault.Match = aztest.Op("Put Range")
				s.SetFaults(fault)
				out, err := Upload(t.Context(), f, bytes.NewReader(content), int64(len(content)), &UploadOptions{ranges: ranges{span: testSpan}})
				if err != nil || out.Requests != 5+11 || s.Requests() != 5+11 || out.Ranges != 10 || !bytes.Equal(stored(t, s, f), content) {
					t.Errorf("%s at %d: written %+v, %v", kind, k, out, err)
				}
			})
		}
	}
}

// Whenever the file changes during the read, what was handed over is the beginning of the version before, and what follows
// Restart is all of the version after. Nothing is left under way.
func TestRangesReadAheadAreOfOneVersionToo(t *testing.T) {
	was, is := patterned(9*testSpan+5, 1), patterned(9*testSpan+5, 2)
	for k := 2; k <= 10; k++ {
		for _, restart := range []bool{false, true} {
			farWorld(t, was, func(t *testing.T, s *aztest.Service, f *file.Client) {
				var b bytes.Buffer
				var n atomic.Int64
				o := &DownloadOptions{ranges: ranges{span: testSpan}, Hooks: observe.Hooks{Span: func(ctx context.Context, one observe.Span) (context.Context, func(error)) {
					if one.Name == "Get File" && n.Add(1) == int64(k) {
						if _, err := f.UploadRange(context.Background(), 0, streaming.NopCloser(bytes.NewReader(is)), nil); err != nil {
							t.Error(err)
						}
					}
					return ctx, func(error) {}
				}}}
				if restart {
					o.Restart = func() error { b.Reset(); return nil }
				}
				got, err := Download(t.Context(), f, &b, o)
				if restart && (err != nil || !bytes.Equal(b.Bytes(), is) || got.Restarts != 1) {
					t.Errorf("%d: %d bytes, %+v, %v", k, b.Len(), got, err)
				}
				if !restart && (!errors.Is(err, pessimistic.ErrConflict) || !bytes.HasPrefix(was, b.Bytes()) || b.Len()%testSpan != 0) {
					t.Errorf("%d, without Restart: %d bytes, %v", k, b.Len(), err)
				}
			})
		}
	}
}

// When one of several ranges in flight fails, the error says how far the content is whole, and each range behind that is whole,
// of the new content or of the old one.
func TestATornWriteOfManyRangesSaysHowFarItIsWhole(t *testing.T) {
	old, content := patterned(9*testSpan, 1), patterned(9*testSpan, 2)
	for k := 1; k < 9; k++ {
		for name, fault := range map[string]aztest.Fault{
			"refused":     {Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure"},
			"unconfirmed": {Kind: aztest.LoseAnswer},
		} {
			farWorld(t, old, func(t *testing.T, s *aztest.Service, f *file.Client) {
				fault.Match = func(r *aztest.Request) bool {
					return r.Op == "Put Range" && r.Header.Get("X-Ms-Range") == fmt.Sprintf("bytes=%d-%d", k*testSpan, (k+1)*testSpan-1)
				}
				s.SetFaults(fault)
				out, err := Upload(t.Context(), f, bytes.NewReader(content), int64(len(content)), &UploadOptions{ranges: ranges{span: testSpan}})
				torn, ok := errors.AsType[*TornError](err)
				if !ok || torn.Written != int64(k*testSpan) || torn.Size != int64(len(content)) || !out.Changed || out.Left != nil {
					t.Fatalf("%s at %d: %+v, %v", name, k, out, err)
				}
				got := stored(t, s, f)
				for at := 0; at < len(got); at += testSpan {
					isNew, isOld := bytes.Equal(got[at:at+testSpan], content[at:at+testSpan]), bytes.Equal(got[at:at+testSpan], old[at:at+testSpan])
					inFlight := at >= k*testSpan && at < (k+4)*testSpan
					if !isNew && !isOld || at < k*testSpan && !isNew || at >= k*testSpan && !inFlight && !isOld {
						t.Errorf("%s at %d: range %d: new %v, old %v", name, k, at/testSpan, isNew, isOld)
					}
				}
				if leaseState(t, NewFile(f)) != lease.Available {
					t.Errorf("%s at %d: the lease remains", name, k)
				}
			})
		}
	}
}

// Cancelled at any moment, a write says how far it came and leaves neither a lease nor a goroutine, and a read hands over a
// beginning of the file.
func TestParallelRangesEndWithTheirContext(t *testing.T) {
	old, content := patterned(9*testSpan, 1), patterned(9*testSpan, 2)
	for after := time.Millisecond; after < 45*time.Millisecond; after += 3 * time.Millisecond {
		farWorld(t, old, func(t *testing.T, s *aztest.Service, f *file.Client) {
			stop := errors.New("stop")
			ctx, cancel := context.WithTimeoutCause(t.Context(), after, stop)
			defer cancel()
			var b bytes.Buffer
			if _, err := Download(ctx, f, &b, &DownloadOptions{ranges: ranges{span: testSpan}}); err != nil && !errors.Is(err, stop) || !bytes.HasPrefix(old, b.Bytes()) || (err == nil) != (b.Len() == len(old)) {
				t.Errorf("read for %v: %d bytes, %v", after, b.Len(), err)
			}
			ctx, cancel = context.WithTimeoutCause(t.Context(), after, stop)
			defer cancel()
			out, err := Upload(ctx, f, bytes.NewReader(content), int64(len(content)), &UploadOptions{ranges: ranges{span: testSpan}})
			torn, isTorn := errors.AsType[*TornError](err)
			if err != nil && !errors.Is(err, stop) || isTorn && !bytes.Equal(stored(t, s, f)[:torn.Written], content[:torn.Written]) || out.Left != nil {
				t.Errorf("written for %v: %+v, %v", after, out, err)
			}
			if got := stored(t, s, f); !isTorn && err != nil && !errors.Is(err, pessimistic.ErrOutcomeUnknown) && !bytes.Equal(got, old) {
				t.Errorf("written for %v: %v, and the file has changed", after, err)
			}
			bubble.Sleep(time.Second)
			if leaseState(t, NewFile(f)) != lease.Available {
				t.Errorf("written for %v: the lease remains", after)
			}
		})
	}
}

// Several ranges that are refused at once are one wait: one of them asks, at its pace, and the others follow.
func TestOneRangeWaitsForTheOthers(t *testing.T) {
	farWorld(t, patterned(9*testSpan, 1), func(t *testing.T, s *aztest.Service, f *file.Client) {
		noted := 0
		o := &UploadOptions{ranges: ranges{span: testSpan}, Wait: &WaitOptions{Poll: pollEach(2 * time.Second), Waiting: func(InUseError) { noted++ }}}
		var puts atomic.Int64
		o.Hooks.Span = func(ctx context.Context, one observe.Span) (context.Context, func(error)) {
			if one.Name == "Put Range" && puts.Add(1) == 2 {
				s.OpenSMB("box", "f", shared("1"))
				s.LockRangeSMB("box", "f", "1", 0, 9*testSpan)
				time.AfterFunc(5*time.Second, func() { s.CloseSMB("box", "f", "1") })
			}
			return ctx, func(error) {}
		}
		content := patterned(9*testSpan, 2)
		out, err := Upload(t.Context(), f, bytes.NewReader(content), int64(len(content)), o)
		// Refused are 4, then 1 every 2 s (at 2 and 4 s), and the clients are listed once.
		if sent := fileOps(s); err != nil || !bytes.Equal(stored(t, s, f), content) || noted != 1 || out.Requests != 5+9+4+2+1 || len(sent) != out.Requests {
			t.Errorf("%+v, %v, %d times noted, sent %d %q", out, err, noted, len(sent), slices.Sorted(slices.Values(sent)))
		}
	})
}
