package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
)

func TestAnUploadSendsExactlyTheseRequests(t *testing.T) {
	look, put, resize, create := []string{lookAtFile}, []string{"Put Range"}, []string{"Set File Properties"}, []string{"Create File"}
	for name, tt := range map[string]struct {
		old, content []byte
		sent         []string
	}{
		"the same length": {[]byte("abc"), []byte("xyz"), join(fileAcquire, look, put)},
		"the same":        {[]byte("abc"), []byte("abc"), join(fileAcquire, look, put)},
		"longer":          {[]byte("abc"), patterned(2*testSpan+1, 1), join(fileAcquire, look, resize, put, put, put)},
		"shorter":         {patterned(2*testSpan+1, 1), []byte("xyz"), join(fileAcquire, look, resize, put)},
		"empty":           {[]byte("abc"), []byte{}, join(fileAcquire, look, resize)},
		"made":            {nil, []byte("xyz"), join(fileAcquire[:1], create, fileAcquire, look, put)},
		"made empty":      {nil, []byte{}, join(fileAcquire[:1], create, fileAcquire, look)},
	} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			made := tt.old == nil
			if made {
				f = s.File("box", "new")
			} else {
				fill(t, s, f, tt.old)
			}
			o := &UploadOptions{ranges: ranges{span: testSpan}, Create: made, Headers: headers()}
			out, err := Upload(t.Context(), f, bytes.NewReader(tt.content), int64(len(tt.content)), o)
			want := join(tt.sent, fileRelease)
			if err != nil || !slices.Equal(fileOps(s), want) || out.Requests != len(want) {
				t.Errorf("%s: %+v, %v, sent %q, want %q", name, out, err, fileOps(s), want)
			}
			ranges := (len(tt.content) + testSpan - 1) / testSpan
			if out != (WriteResult{Changed: true, Created: made, Size: int64(len(tt.content)), Ranges: ranges, Requests: len(want)}) {
				t.Errorf("%s: %+v", name, out)
			}
			seen, err := f.GetProperties(t.Context(), nil)
			if err != nil || ptr.Value(seen.ContentType) != "text/plain" || !bytes.Equal(stored(t, s, f), tt.content) || leaseState(t, NewFile(f)) != lease.Available {
				t.Errorf("%s: headers %q, lease %v, %v", name, ptr.Value(seen.ContentType), leaseState(t, NewFile(f)), err)
			}
		})
	}
}

func TestAnUploadOfAFileSurvivesAnyFaultOfAnyRequest(t *testing.T) {
	content := patterned(testSpan+8, 2)
	for _, made := range []bool{false, true} {
		requests := 3 + 1 + 1 + 2 + 1
		if made {
			requests = 1 + 1 + 3 + 1 + 2 + 1
		}
		for _, kind := range updateFaults {
			for k := range requests {
				if k == 0 && (kind == aztest.DelayCommit || kind == aztest.RepeatLater) {
					continue // see the same test of Update; and when there is no file it is nothing new
				}
				if made && k == 1 && (kind == aztest.DelayCommit || kind == aztest.RepeatLater) {
					continue // see TestTheLastUploadDeterminesTheFile
				}
				if made && k == 2 && (kind == aztest.DelayCommit || kind == aztest.RepeatLater) {
					continue // the acquire
				}
				fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
					if made {
						f = s.File("box", "new")
					} else {
						fill(t, s, f, []byte("abc"))
					}
					s.SetFaults(aztest.Fault{Kind: kind, Skip: k, Count: 1, Delay: 7 * time.Second})
					out, err := Upload(t.Context(), f, bytes.NewReader(content), int64(len(content)), &UploadOptions{ranges: ranges{span: testSpan}, Create: made})
					if err != nil || out.Left != nil || out.Requests != s.Requests() || out.Created != made {
						t.Errorf("%s at %d: %+v, %v, sent %q", kind, k, out, err, fileOps(s))
					}
					s.Flush()
					if !bytes.Equal(stored(t, s, f), content) || leaseState(t, NewFile(f)) != lease.Available {
						t.Errorf("%s at %d: lease %v, or the content is another", kind, k, leaseState(t, NewFile(f)))
					}
				})
			}
		}
	}
}

// FileREST cannot make a file only where there is none. One that a request which was held back makes once more is empty
// again, unless it is leased by then.
func TestTheLastUploadDeterminesTheFile(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, _ *file.Client) {
		f := s.File("box", "new")
		s.SetFaults(aztest.Fault{Kind: aztest.RepeatLater, Match: aztest.Op("Create File"), Count: 1, Delay: time.Hour})
		if _, err := Upload(t.Context(), f, bytes.NewReader([]byte("xyz")), 3, &UploadOptions{ranges: ranges{span: testSpan}, Create: true}); err != nil {
			t.Fatal(err)
		}
		l, err := pessimistic.Acquire(t.Context(), NewFile(f), nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Flush()
		if got := stored(t, s, f); string(got) != "xyz" {
			t.Errorf("under a lease it became %q", got)
		}
		released(t, l)
	})
}

func TestTwoConcurrentUploadsLeaveOneWholeContent(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, _ *file.Client) {
		f := s.File("box", "new")
		contents := [][]byte{patterned(2*testSpan, 1), patterned(testSpan+1, 2), patterned(3, 3)}
		failed := make(chan error, len(contents))
		for _, content := range contents {
			go func() {
				_, err := Upload(t.Context(), f, bytes.NewReader(content), int64(len(content)), &UploadOptions{ranges: ranges{span: testSpan}, Create: true})
				failed <- err
			}()
		}
		for range contents {
			if err := <-failed; err != nil {
				t.Error(err)
			}
		}
		got := stored(t, s, f)
		if !slices.ContainsFunc(contents, func(one []byte) bool { return bytes.Equal(one, got) }) {
			t.Errorf("%d bytes that nobody has uploaded", len(got))
		}
	})
}

func TestAReadErrorBeforeTheFirstRangeChangesNothingAndALaterOneTears(t *testing.T) {
	unreadable := errors.New("unreadable")
	whole := patterned(testSpan+8, 2)
	after := func(n int, err error) io.Reader {
		return io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(err))
	}
	for name, tt := range map[string]struct {
		content io.Reader
		size    int64
		torn    bool
		cause   error // nil: the content is not of the stated size
	}{
		"at once":               {after(0, unreadable), 8, false, unreadable},
		"broken":                {after(5, io.ErrUnexpectedEOF), 8, false, io.ErrUnexpectedEOF},
		"broken after the last": {after(8, io.ErrUnexpectedEOF), 8, false, io.ErrUnexpectedEOF},
		"too short":             {bytes.NewReader(whole[:5]), 8, false, nil},
		"too long":              {bytes.NewReader(whole[:9]), 8, false, nil},
		"later":                 {after(testSpan, unreadable), testSpan + 8, true, unreadable},
		"broken later":          {after(testSpan+5, io.ErrUnexpectedEOF), testSpan + 8, true, io.ErrUnexpectedEOF},
		"short later":           {bytes.NewReader(whole[:testSpan+1]), testSpan + 8, true, nil},
		"too long later":        {bytes.NewReader(whole), testSpan + 7, true, nil},
	} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			fill(t, s, f, []byte("abc"))
			out, err := Upload(t.Context(), f, tt.content, tt.size, &UploadOptions{ranges: ranges{span: testSpan}})
			torn, isTorn := errors.AsType[*TornError](err)
			if err == nil || isTorn != tt.torn || out.Changed != tt.torn || out.Left != nil || leaseState(t, NewFile(f)) != lease.Available {
				t.Errorf("%s: %+v, %v", name, out, err)
			}
			if tt.cause != nil && !errors.Is(err, tt.cause) || strings.Contains(fmt.Sprint(err), "stated size") != (tt.cause == nil) {
				t.Errorf("%s: err = %v, want %v", name, err, tt.cause)
			}
			if isTorn && (torn.Written != testSpan || torn.Size != tt.size) {
				t.Errorf("%s: %+v", name, torn)
			}
			if got := stored(t, s, f); !tt.torn && string(got) != "abc" || tt.torn && !bytes.Equal(got[:testSpan], whole[:testSpan]) {
				t.Errorf("%s: %d bytes", name, len(got))
			}
		})
	}
}

func TestAnUploadThatIsCancelledAtAnyRequestLeavesNoLease(t *testing.T) {
	content := patterned(testSpan+8, 2)
	const requests = 1 + 1 + 3 + 1 + 2
	for k := range requests {
		fileWorld(t, func(t *testing.T, s *aztest.Service, _ *file.Client) {
			f := s.File("box", "new")
			ctx, cancel := context.WithCancelCause(t.Context())
			cause := fmt.Errorf("cancelled at request %d", k)
			n := 0
			// A request under way is carried out before the next one.
			s.SetFaults(aztest.Fault{Kind: aztest.DelayCommit, Count: 1, Match: func(*aztest.Request) bool {
				n++
				if n == k+1 {
					cancel(cause)
				}
				return n == k+1
			}})
			out, err := Upload(ctx, f, bytes.NewReader(content), int64(len(content)), &UploadOptions{ranges: ranges{span: testSpan}, Create: true})
			s.SetFaults()
			if !errors.Is(err, cause) || out.Left != nil || errors.Is(err, ErrTorn) != (k >= 5) {
				t.Errorf("%d: %+v, %v", k, out, err)
			}
			s.Flush()
			if k > 0 && leaseState(t, NewFile(f)) != lease.Available {
				t.Errorf("%d: lease %v", k, leaseState(t, NewFile(f)))
			}
		})
	}
}

func TestAnUploadIsRefusedWithoutAFileOrItsDirectory(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		none := func() io.Reader { return bytes.NewReader(nil) }
		out, err := Upload(t.Context(), s.File("box", "missing"), none(), 0, &UploadOptions{ranges: ranges{span: testSpan}})
		if !errors.Is(err, pessimistic.ErrNotFound) || out.Requests != 1 {
			t.Errorf("without Create: %+v, %v", out, err)
		}
		inside := s.Share("box").NewDirectoryClient("none").NewFileClient("f")
		out, err = Upload(t.Context(), inside, none(), 0, &UploadOptions{ranges: ranges{span: testSpan}, Create: true})
		if !errors.Is(err, pessimistic.ErrNotFound) || azerr.Classify(err).Code != "ParentNotFound" || out.Requests != 2 || out.Created {
			t.Errorf("without a directory: %+v, %v", out, err)
		}
		if _, err := Upload(t.Context(), f, none(), -1, &UploadOptions{ranges: ranges{span: testSpan}}); err == nil {
			t.Error("a negative size is taken")
		}
		if _, err := Upload(t.Context(), nil, none(), 0, &UploadOptions{ranges: ranges{span: testSpan}}); err == nil {
			t.Error("no client is taken")
		}
	})
}

// Another client creates the file, and leases it, while this call's request to create it is under way.
func TestAnUploadWaitsForALeasedFile(t *testing.T) {
	for _, wait := range []time.Duration{time.Second, 0} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, _ *file.Client) {
			f := s.File("box", "new")
			var other *pessimistic.Lease
			hooks := observe.Hooks{Span: func(ctx context.Context, s observe.Span) (context.Context, func(error)) {
				if s.Name == "Create File" {
					if _, err := Upload(context.Background(), f, strings.NewReader("other"), 5, &UploadOptions{Create: true}); err != nil {
						t.Error(err)
					}
					var err error
					if other, err = pessimistic.TryAcquire(context.Background(), NewFile(f), nil); err != nil {
						t.Error(err)
					}
					time.AfterFunc(5*time.Second, func() { _ = other.Release(context.Background()) })
				}
				return ctx, func(error) {}
			}}
			out, err := Upload(t.Context(), f, strings.NewReader("xyz"), 3, &UploadOptions{Create: true, Hooks: hooks, Acquire: pessimistic.AcquireOptions{MaxWait: wait}})
			if wait > 0 && (!errors.Is(err, pessimistic.ErrHeld) || out.Changed || string(stored(t, s, f)) != "other") {
				t.Errorf("for %v: %+v, %v", wait, out, err)
			}
			if wait == 0 && (err != nil || out.Created || !out.Changed || string(stored(t, s, f)) != "xyz") {
				t.Errorf("for as long as it takes: %+v, %v", out, err)
			}
			bubble.Sleep(10 * time.Second)
		})
	}
}

func TestAFileIsWrittenInRangesOfFourMiB(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		content := patterned(2*rangeSize+1, 1)
		out, err := Upload(t.Context(), f, bytes.NewReader(content), int64(len(content)), nil)
		if err != nil || out.Ranges != 3 || !bytes.Equal(stored(t, s, f), content) {
			t.Errorf("upload: %+v, %v", out, err)
		}
		content[2*rangeSize] ^= 1
		if out, err = Update(t.Context(), f, to(content), nil); err != nil || out.Ranges != 1 || !bytes.Equal(stored(t, s, f), content) {
			t.Errorf("update: %+v, %v", out, err)
		}
	})
}

// An intermediary that takes the length from a response must not make a file look empty: a write would leave it as it is.
func TestAMissingLengthIsNotALengthOfZero(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		fill(t, s, f, []byte("content"))
		l, err := pessimistic.Acquire(t.Context(), NewFile(f), nil)
		if err != nil {
			t.Fatal(err)
		}
		s.SetFaults(aztest.Fault{Kind: aztest.Rechunk, Match: aztest.Op(lookAtFile)})
		out, err := Upload(t.Context(), f, strings.NewReader(""), 0, &UploadOptions{LeaseID: l.ID()})
		if left := stored(t, s, f); err == nil && len(left) > 0 || err != nil && (out.Changed || string(left) != "content") {
			t.Errorf("Upload = %+v, %v, and the file has %q", out, err, left)
		}
		released(t, l)
	})
}

// Zeros are not sent: they are cleared, and behind the old end nothing is done.
func TestZerosAreNotSent(t *testing.T) {
	data := patterned(testSpan, 7)
	long := slices.Concat(data, make([]byte, 20*testSpan), data)
	for name, tt := range map[string]struct {
		old, content []byte
		sent         []string // the ranges, and the new length
	}{
		"over data":          {bytes.Repeat(data, 22), long, slices.Repeat([]string{"Put Range"}, 22)},
		"behind the old end": {data, long, []string{"Set File Properties", "Put Range", "Put Range"}},
		"one range":          {data, make([]byte, testSpan), []string{"Put Range"}},
	} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			fill(t, s, f, tt.old)
			out, err := Upload(t.Context(), f, bytes.NewReader(tt.content), int64(len(tt.content)), &UploadOptions{ranges: ranges{span: testSpan}})
			want := join(fileAcquire, []string{lookAtFile}, tt.sent, fileRelease)
			if sent := fileOps(s); err != nil || !slices.Equal(sent, want) || !bytes.Equal(stored(t, s, f), tt.content) {
				t.Errorf("%s: %+v, %v, sent %v, want %v", name, out, err, sent, want)
			}
		})
	}
}
