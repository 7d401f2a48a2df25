package files

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/observe"
)

// testSpan is the length of a range in most tests: it need not be 4 MiB to be judged.
const testSpan = 64

// patterned is a content of which no two ranges are the same, nor of two seeds.
func patterned(size int, seed byte) []byte {
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(i/testSpan) ^ byte(i*7) ^ seed
	}
	return content
}

// fill makes the file what content says, without faults and without being counted.
func fill(t *testing.T, s *aztest.Service, f *file.Client, content []byte) {
	t.Helper()
	s.SetFaults()
	if _, err := f.Create(context.Background(), int64(len(content)), &file.CreateOptions{HTTPHeaders: headers()}); err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(content); at += rangeSize {
		part := content[at:min(at+rangeSize, len(content))]
		if _, err := f.UploadRange(context.Background(), int64(at), streaming.NopCloser(bytes.NewReader(part)), nil); err != nil {
			t.Fatal(err)
		}
	}
	s.Reset()
}

func headers() *file.HTTPHeaders {
	kind, cache := "text/plain", "no-store"
	return &file.HTTPHeaders{ContentType: &kind, CacheControl: &cache}
}

func stored(t *testing.T, s *aztest.Service, f *file.Client) []byte {
	t.Helper()
	s.SetFaults()
	var b bytes.Buffer
	if _, err := Download(context.Background(), f, &b, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAFileIsReadInRangesOfFourMiB(t *testing.T) {
	for size, requests := range map[int]int{0: 2, 1: 1, rangeSize: 1, rangeSize + 1: 2, 3 * rangeSize: 3} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			content := patterned(size, 1)
			fill(t, s, f, content)
			var b bytes.Buffer
			got, err := Download(t.Context(), f, &b, nil)
			if err != nil || !bytes.Equal(b.Bytes(), content) || got.Size != int64(size) || got.Requests != requests || s.Requests() != requests {
				t.Errorf("%d bytes: %d read, %+v, %v, sent %q", size, b.Len(), got, err, fileOps(s))
			}
			if got.ETag == "" || got.Leased || got.Restarts != 0 {
				t.Errorf("%d bytes: %+v", size, got)
			}
		})
	}
}

// betweenRanges calls what before the n-th range is read, once.
func betweenRanges(n int, what func()) observe.Hooks {
	var reads atomic.Int64
	return observe.Hooks{Span: func(ctx context.Context, s observe.Span) (context.Context, func(error)) {
		if s.Name == "Get File" && reads.Add(1) == int64(n) {
			what()
		}
		return ctx, func(error) {}
	}}
}

func TestTheRangesOfAFileAreOfOneVersion(t *testing.T) {
	const size = 2*testSpan + 5
	was, is := patterned(size, 1), patterned(size, 2)
	for name, change := range map[string][]byte{"as long": is, "longer": append(slices.Clone(is), is...), "shorter": is[:testSpan], "empty": {}} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			fill(t, s, f, was)
			var b bytes.Buffer
			got, err := Download(t.Context(), f, &b, &DownloadOptions{ranges: ranges{span: testSpan},
				Restart: func() error { b.Reset(); return nil },
				Hooks:   betweenRanges(2, func() { fill(t, s, f, change) }),
			})
			if err != nil || !bytes.Equal(b.Bytes(), change) || got.Restarts != 1 {
				t.Errorf("%s: %d bytes, %+v, %v", name, b.Len(), got, err)
			}
		})
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			fill(t, s, f, was)
			var b bytes.Buffer
			_, err := Download(t.Context(), f, &b, &DownloadOptions{ranges: ranges{span: testSpan}, Hooks: betweenRanges(2, func() { fill(t, s, f, change) })})
			// Of the ranges in flight together, the second may have been read before the change.
			if !errors.Is(err, pessimistic.ErrConflict) || b.Len() < testSpan || !bytes.HasPrefix(was, b.Bytes()) {
				t.Errorf("%s, without Restart: %d bytes, %v", name, b.Len(), err)
			}
		})
	}
}

func TestReadingRestartsABoundedNumberOfTimes(t *testing.T) {
	for restarts, want := range map[int]int{0: 3, 1: 1, -1: 0} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			fill(t, s, f, patterned(testSpan+1, 1))
			n := 0
			o := &DownloadOptions{ranges: ranges{span: testSpan}, Restarts: restarts, Restart: func() error { return nil }}
			o.Hooks.Span = func(ctx context.Context, s observe.Span) (context.Context, func(error)) {
				if s.Request == nil {
					return ctx, nil
				}
				if n++; n%2 == 0 { // before every second range
					if _, err := f.SetMetadata(context.Background(), nil); err != nil {
						t.Error(err)
					}
				}
				return ctx, func(error) {}
			}
			got, err := Download(t.Context(), f, &bytes.Buffer{}, o)
			if !errors.Is(err, pessimistic.ErrConflict) || got.Restarts != want || got.Requests != 2*(want+1) {
				t.Errorf("%d: %+v, %v", restarts, got, err)
			}
		})
	}
}

func TestAHeartbeatCanBeIgnoredButAWriteCannot(t *testing.T) {
	for name, tt := range map[string]struct {
		loose, write bool
		err          error
	}{
		"a heartbeat":          {false, false, pessimistic.ErrConflict},
		"a heartbeat, ignored": {true, false, nil},
		"a write":              {true, true, pessimistic.ErrConflict},
	} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			content := patterned(testSpan+1, 1)
			fill(t, s, f, content)
			l, err := pessimistic.Acquire(t.Context(), NewFile(f), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Release(context.Background()) }()
			id := l.ID()
			got, err := Download(t.Context(), f, &bytes.Buffer{}, &DownloadOptions{ranges: ranges{span: testSpan}, IgnoreMetadata: tt.loose, Hooks: betweenRanges(2, func() {
				bubble.Sleep(15 * time.Second) // a heartbeat
				if tt.write {
					_, _ = f.UploadRange(context.Background(), 0, streaming.NopCloser(bytes.NewReader([]byte("x"))), &file.UploadRangeOptions{LeaseAccessConditions: leasedBy(id)})
				}
			})})
			if !errors.Is(err, tt.err) || tt.err == nil && (err != nil || !got.Leased) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			// The holder itself need not care.
			var b bytes.Buffer
			got, err = Download(t.Context(), f, &b, &DownloadOptions{ranges: ranges{span: testSpan}, LeaseID: id, Hooks: betweenRanges(2, func() { bubble.Sleep(15 * time.Second) })})
			if err != nil || got.Leased || b.Len() != len(content) {
				t.Errorf("%s: the holder: %+v, %v", name, got, err)
			}
		})
	}
}

func TestARangeIsReadAgainAfterAFault(t *testing.T) {
	content := patterned(2*testSpan+5, 1)
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.LoseRequest, aztest.CutAnswer, aztest.Throttle, aztest.Refuse, aztest.FailAfterCommit, aztest.AnswerTwice, aztest.Hang} {
		for k := range 3 {
			fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
				fill(t, s, f, content)
				s.SetFaults(aztest.Fault{Kind: kind, Skip: k, Count: 1})
				var b bytes.Buffer
				got, err := Download(t.Context(), f, &b, &DownloadOptions{ranges: ranges{span: testSpan}})
				want := 4
				if kind == aztest.AnswerTwice {
					want = 3
				}
				if err != nil || !bytes.Equal(b.Bytes(), content) || got.Requests != want || s.Requests() != want {
					t.Errorf("%s at %d: %d bytes, %+v, %v", kind, k, b.Len(), got, err)
				}
			})
		}
	}
}

type failing struct{ after int }

var errFull = errors.New("disk full")

func (f *failing) Write(p []byte) (int, error) {
	if f.after--; f.after < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestAnErrorOfTheWriterEndsTheReading(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		fill(t, s, f, patterned(3*testSpan, 1))
		got, err := Download(t.Context(), f, &failing{after: 1}, &DownloadOptions{ranges: ranges{testSpan, 1}})
		if !errors.Is(err, errFull) || got.Requests != 2 {
			t.Errorf("%+v, %v", got, err)
		}
		_, err = Download(t.Context(), f, &bytes.Buffer{}, &DownloadOptions{ranges: ranges{span: testSpan},
			Restart: func() error { return errFull }, Hooks: betweenRanges(2, func() { fill(t, s, f, nil) })})
		if !errors.Is(err, errFull) {
			t.Errorf("what Restart says: %v", err)
		}
	})
}

func TestAReadThatIsRefusedNamesTheClientsOrWaits(t *testing.T) {
	for reason, o := range obstacles {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			o.begin(s)
			_, err := Download(t.Context(), f, &bytes.Buffer{}, nil)
			used, ok := errors.AsType[*InUseError](err)
			if !ok || used.Reason != reason || s.Requests() != 1 {
				t.Errorf("%v: %v after %d requests", reason, err, s.Requests())
			}
			time.AfterFunc(5*time.Second, func() { o.end(s) })
			var b bytes.Buffer
			got, err := Download(t.Context(), f, &b, &DownloadOptions{Wait: &WaitOptions{Poll: pollEach(2 * time.Second)}})
			if err != nil || b.Len() != 3 || got.Requests != 4 {
				t.Errorf("%v: %+v, %v", reason, got, err)
			}
		})
	}
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		_, missing := Download(t.Context(), s.File("box", "missing"), &bytes.Buffer{}, nil)
		_, lost := Download(t.Context(), f, &bytes.Buffer{}, &DownloadOptions{LeaseID: "6f1f1a1e-0000-4000-8000-000000000000"})
		s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: http.StatusForbidden, Code: "AuthorizationFailure"})
		_, forbidden := Download(t.Context(), f, &bytes.Buffer{}, nil)
		if !errors.Is(missing, pessimistic.ErrNotFound) || !errors.Is(lost, pessimistic.ErrLost) || azerr.Classify(forbidden).Kind != azerr.Unauthorised || s.Requests() != 3 {
			t.Errorf("%v; %v; %v", missing, lost, forbidden)
		}
	})
}
