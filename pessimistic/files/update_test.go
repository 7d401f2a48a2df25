package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
)

// to is a change that sets the content.
func to(content []byte) func(context.Context, []byte) ([]byte, error) {
	return func(context.Context, []byte) ([]byte, error) { return content, nil }
}

func join(all ...[]string) []string { return slices.Concat(all...) }

var fileRelease = []string{"Release File Lease"}

func TestAnUpdateOfAFileSendsExactlyTheseRequests(t *testing.T) {
	read, put, resize := []string{"Get File"}, []string{"Put Range"}, []string{"Set File Properties"}
	long := patterned(3*testSpan, 1)
	middle := slices.Clone(long)
	middle[testSpan]++
	for name, tt := range map[string]struct {
		old, content []byte
		sent         []string
		ranges       int
	}{
		"the same length":    {[]byte("abc"), []byte("abd"), join(read, put), 1},
		"nothing new":        {[]byte("abc"), []byte("abc"), read, 0},
		"longer":             {[]byte("abc"), []byte("abcd"), join(read, resize, put), 1},
		"shorter":            {[]byte("abc"), []byte("ab"), join(read, resize), 0},
		"empty from now on":  {[]byte("abc"), nil, join(read, resize), 0},
		"empty until now":    {nil, []byte("abc"), join(read, []string{lookAtFile}, resize, put), 1},
		"always empty":       {nil, nil, join(read, []string{lookAtFile}), 0},
		"one range of three": {long, middle, join(read, read, read, put), 1},
		"all of three":       {long, patterned(3*testSpan, 2), join(read, read, read, put, put, put), 3},
		"an end":             {long, append(slices.Clone(long), 'x'), join(read, read, read, resize, put), 1},
		"an end cut off":     {long, long[:testSpan+1], join(read, read, read, resize), 0},
	} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			fill(t, s, f, tt.old)
			out, err := Update(t.Context(), f, to(tt.content), &UpdateOptions{ranges: ranges{span: testSpan}})
			want := join(fileAcquire, tt.sent, fileRelease)
			if err != nil || !slices.Equal(fileOps(s), want) || out.Requests != len(want) {
				t.Errorf("%s: %+v, %v, sent %q, want %q", name, out, err, fileOps(s), want)
			}
			if out.Changed == bytes.Equal(tt.old, tt.content) || out.Size != int64(len(tt.content)) || out.Ranges != tt.ranges || out.Created || out.Left != nil {
				t.Errorf("%s: %+v", name, out)
			}
			if got := stored(t, s, f); !bytes.Equal(got, tt.content) {
				t.Errorf("%s: the file has %d bytes, want %d", name, len(got), len(tt.content))
			}
			seen, err := f.GetProperties(t.Context(), nil)
			if err != nil || ptr.Value(seen.ContentType) != "text/plain" || ptr.Value(seen.CacheControl) != "no-store" || leaseState(t, NewFile(f)) != lease.Available {
				t.Errorf("%s: headers %q, %q, lease %v", name, ptr.Value(seen.ContentType), ptr.Value(seen.CacheControl), leaseState(t, NewFile(f)))
			}
		})
	}
}

func TestAnUpdateUnderTheCallersLeaseLeavesItThere(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		l, err := pessimistic.Acquire(t.Context(), NewFile(f), nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Reset()
		out, err := Update(t.Context(), f, to([]byte("xyz")), &UpdateOptions{ranges: ranges{span: testSpan}, LeaseID: l.ID()})
		if err != nil || out.Requests != 2 || s.Requests() != 2 || l.Err() != nil {
			t.Errorf("%+v, %v, sent %q", out, err, fileOps(s))
		}
		released(t, l)
		_, err = Update(t.Context(), f, to([]byte("abc")), &UpdateOptions{ranges: ranges{span: testSpan}, LeaseID: l.ID()})
		if !errors.Is(err, pessimistic.ErrLost) || errors.Is(err, ErrTorn) || string(stored(t, s, f)) != "xyz" {
			t.Errorf("with an id that is over: %v", err)
		}
	})
}

// increment adds one to the number in the file, which has eight digits.
func increment(_ context.Context, old []byte) ([]byte, error) {
	n, err := strconv.Atoi(string(old))
	return fmt.Appendf(nil, "%08d", n+1), err
}

func TestNoUpdateOfAFileIsLost(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		fill(t, s, f, []byte("00000000"))
		const workers, each = 4, 5
		failed := make(chan error, workers*each)
		for range workers {
			go func() {
				for range each {
					_, err := Update(t.Context(), f, increment, &UpdateOptions{ranges: ranges{span: testSpan}})
					failed <- err
				}
			}()
		}
		for range workers * each {
			if err := <-failed; err != nil {
				t.Error(err)
			}
		}
		if got := string(stored(t, s, f)); got != "00000020" {
			t.Errorf("%d updates made %s", workers*each, got)
		}
	})
}

// updateFaults are what may happen to a request.
var updateFaults = []aztest.FaultKind{aztest.LoseAnswer, aztest.LoseRequest, aztest.FailAfterCommit, aztest.AnswerTwice, aztest.Throttle, aztest.Refuse, aztest.CutAnswer, aztest.Hang, aztest.DelayCommit, aztest.RepeatLater}

// What may happen to any one request of an update neither loses it nor applies it twice, and leaves no lease.
func TestAnUpdateOfAFileSurvivesAnyFaultOfAnyRequest(t *testing.T) {
	old, content := patterned(testSpan+8, 1), patterned(2*testSpan+8, 2)
	const requests = 3 + 2 + 1 + 3 + 1
	for _, kind := range updateFaults {
		for k := range requests {
			fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
				fill(t, s, f, old)
				s.SetFaults(aztest.Fault{Kind: kind, Skip: k, Count: 1, Delay: 7 * time.Second})
				calls := 0
				out, err := Update(t.Context(), f, func(_ context.Context, was []byte) ([]byte, error) {
					calls++
					if !bytes.Equal(was, old) {
						t.Errorf("%s at %d: change was given something else", kind, k)
					}
					return content, nil
				}, &UpdateOptions{ranges: ranges{span: testSpan}})
				if err != nil || out.Left != nil || calls != 1 || out.Requests != s.Requests() {
					t.Errorf("%s at %d: %+v, %v, %d calls, sent %q", kind, k, out, err, calls, fileOps(s))
				}
				s.Flush() // what was held back arrives
				want := lease.Available
				if k == 0 && (kind == aztest.DelayCommit || kind == aztest.RepeatLater) {
					want = lease.Leased // by a request that was overtaken by its own release, which nobody can prevent: see doc.go
				}
				if !bytes.Equal(stored(t, s, f), content) || leaseState(t, NewFile(f)) != want {
					t.Errorf("%s at %d: lease %v, or the content is another", kind, k, leaseState(t, NewFile(f)))
				}
			})
		}
	}
}

func TestAnUpdateOfAFileThatIsCancelledAtAnyRequestLeavesNoLeaseAndSaysIfItIsTorn(t *testing.T) {
	old, content := patterned(testSpan+8, 1), patterned(2*testSpan+8, 2)
	const first, requests = 3 + 2, 3 + 2 + 1 + 3 // first is the first write
	for _, carried := range []bool{false, true} {
		for k := range requests {
			fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
				fill(t, s, f, old)
				ctx, cancel := context.WithCancelCause(t.Context())
				cause := fmt.Errorf("cancelled at request %d", k)
				n := 0
				kind := aztest.LoseRequest
				if carried {
					kind = aztest.DelayCommit // until the next request
				}
				s.SetFaults(aztest.Fault{Kind: kind, Count: 1, Match: func(*aztest.Request) bool {
					n++
					if n == k+1 {
						cancel(cause)
					}
					return n == k+1
				}})
				out, err := Update(ctx, f, to(content), &UpdateOptions{ranges: ranges{testSpan, 1}})
				s.SetFaults()
				torn, isTorn := errors.AsType[*TornError](err)
				if !errors.Is(err, cause) || isTorn != (k >= first) || out.Left != nil {
					t.Errorf("%d: %+v, %v", k, out, err)
				}
				if isTorn && (torn.Size != int64(len(content)) || torn.Written != int64(max(0, k-first-1)*testSpan)) {
					t.Errorf("%d: %+v", k, torn)
				}
				untouched := k < first || k == first && !carried
				if got := stored(t, s, f); leaseState(t, NewFile(f)) != lease.Available || bytes.Equal(got, old) != untouched {
					t.Errorf("%d: lease %v, %d bytes", k, leaseState(t, NewFile(f)), len(got))
				}
			})
		}
	}
}

func TestALeaseThatIsBrokenWhileWritingTearsTheFileAndSaysSo(t *testing.T) {
	old, content := patterned(3*testSpan, 1), patterned(3*testSpan, 2)
	for _, again := range []bool{false, true} { // another client holds the lease by then
		for k, torn := range []bool{false, true, true} {
			fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
				fill(t, s, f, old)
				puts := 0
				s.SetFaults(aztest.Fault{Kind: aztest.Slow, Match: func(r *aztest.Request) bool {
					if r.Op == "Put Range" {
						if puts++; puts == k+1 {
							return true
						}
					}
					return false
				}, Delay: time.Second})
				var other *pessimistic.Lease
				brk := func() {
					if _, err := pessimistic.Break(context.Background(), NewFile(f), nil); err != nil {
						t.Error(err)
					}
					if again {
						var err error
						if other, err = pessimistic.TryAcquire(context.Background(), NewFile(f), nil); err != nil {
							t.Error(err)
						}
					}
				}
				seen := 0
				out, err := Update(t.Context(), f, to(content), &UpdateOptions{ranges: ranges{testSpan, 1}, Hooks: observe.Hooks{Span: func(ctx context.Context, s observe.Span) (context.Context, func(error)) {
					if s.Name == "Put Range" || s.Name == "Set File Properties" {
						if seen++; seen == k+1 {
							brk()
						}
					}
					return ctx, func(error) {}
				}}})
				if !errors.Is(err, pessimistic.ErrLost) || errors.Is(err, ErrTorn) != torn || out.Ranges != k || out.Changed != torn {
					t.Errorf("%d: %+v, %v", k, out, err)
				}
				got := stored(t, s, f)
				if !bytes.Equal(got[:k*testSpan], content[:k*testSpan]) || !bytes.Equal(got[k*testSpan:], old[k*testSpan:]) {
					t.Errorf("%d: the content is another than what was said", k)
				}
				if other != nil {
					released(t, other)
				}
			})
		}
	}
}

func TestAWriteOfOneRequestWithoutAResponseIsUnknown(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		for kind, want := range map[aztest.FaultKind]string{aztest.LoseAnswer: "xyz", aztest.LoseRequest: "abc"} {
			fill(t, s, f, []byte("abc"))
			s.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op("Put Range")})
			out, err := Update(t.Context(), f, to([]byte("xyz")), &UpdateOptions{ranges: ranges{span: testSpan}})
			if !errors.Is(err, pessimistic.ErrOutcomeUnknown) || errors.Is(err, ErrTorn) || out.Left != nil || string(stored(t, s, f)) != want {
				t.Errorf("%s: %+v, %v", kind, out, err)
			}
		}
		fill(t, s, f, []byte("abc"))
		s.SetFaults(aztest.Fault{Kind: aztest.Refuse, Match: aztest.Op("Put Range")})
		if _, err := Update(t.Context(), f, to([]byte("xyz")), &UpdateOptions{ranges: ranges{span: testSpan}}); err == nil || errors.Is(err, pessimistic.ErrOutcomeUnknown) || errors.Is(err, ErrTorn) {
			t.Errorf("nothing arrived: %v", err)
		}
	})
}

func TestALeaseWhoseReleaseIsNotConfirmedIsMentioned(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		s.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Op("Release File Lease")})
		out, err := Update(t.Context(), f, to([]byte("xyz")), &UpdateOptions{ranges: ranges{span: testSpan}})
		if err != nil || !errors.Is(out.Left, pessimistic.ErrOutcomeUnknown) {
			t.Fatalf("%+v, %v", out, err)
		}
		s.SetFaults()
		bubble.Sleep(time.Minute)
		if err := BreakStale(t.Context(), f, 30*time.Second, nil); err != nil || string(stored(t, s, f)) != "xyz" {
			t.Errorf("the way out: %v", err)
		}
	})
}
