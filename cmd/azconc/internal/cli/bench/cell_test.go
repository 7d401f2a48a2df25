package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/pkg/aztest"
)

// siteOf returns a site on the service in memory.
func siteOf(tb testing.TB, s *aztest.Service) *site {
	tb.Helper()
	streams, _, _, stderr := cli.TestStreams()
	f := cli.NewFactory(streams, nil)
	if _, err := f.Use(fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;BlobEndpoint=%s;QueueEndpoint=%s;TableEndpoint=%s;",
		aztest.Account, aztest.Key, s.BlobURL(), s.QueueURL(), s.TableURL())); err != nil {
		tb.Fatal(err)
	}
	f.Wire = s
	site := newSite(f)
	tb.Cleanup(func() {
		if f.Close(); stderr.Len() > 0 {
			tb.Error(stderr)
		}
	})
	return site
}

// all returns options for every workload with that many clients.
func all(clients int, each time.Duration, requests int) *options {
	return &options{Workloads: names(), Clients: []int{clients}, For: each, MaxRequests: requests}
}

// removed removes what s has created, and looks whether anything is there.
func removed(t *testing.T, s *site, service *aztest.Service) {
	t.Helper()
	if s.remove(t.Context()); len(open(service)) != 0 {
		t.Errorf("%v is there", open(service))
	}
}

// A client without others sends what the documentation says, to the request. So a change of a workload, or of azconc, that sends
// more is seen.
func TestACommitCostsTheseRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := map[string]float64{
			"blob azconc": 2, "blob plain loop": 2, "blob full jitter": 2, "blob lease": 4, "blob one process": 1,
			"lock lease": 2,
		}
		service := far()
		s := siteOf(t, service)
		o := all(1, time.Second, 5000)
		for _, c := range o.cells() {
			m, err := s.measure(t.Context(), c, o)
			if err != nil {
				t.Fatal(err)
			}
			if m.Failed != 0 || m.CommitsPerS <= 0 {
				t.Errorf("%v: %d failed, %.1f/s", c, m.Failed, m.CommitsPerS)
			}
			if n, exact := want[c.Workload+" "+c.Way]; exact && math.Abs(m.RequestsPerCommit-n) > 0.001 {
				t.Errorf("%v: %.3f requests per commit, want %.3f", c, m.RequestsPerCommit, n)
			}
			// A process that comes back within 0.1 s knows the lock that it left. One that has held it for 0.1 s, in one turn or in several,
			// looks for waiters.
			if n := m.RequestsPerCommit; c.Workload == "lock" && n > 3.2 {
				t.Errorf("%v: %.3f requests per commit", c, n)
			}
			t.Logf("%v: %.3f requests per commit, %.1f/s, p50 %v ms", c, m.RequestsPerCommit, m.CommitsPerS, m.P50MS)
		}
		removed(t, s, service)
	})
}

// The number of requests that a user agrees to is one that the run does not exceed, whatever the workload.
func TestARunStaysWithinItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := far()
		s := siteOf(t, service)
		o := all(8, time.Hour, 150)
		for _, c := range o.cells() {
			before := service.Requests()
			m, err := s.measure(t.Context(), c, o)
			if err != nil {
				t.Fatal(err)
			}
			if used := service.Requests() - before; used > 150+5*8+10 {
				t.Errorf("%v: %d requests", c, used)
			}
			if m.Commits == 0 {
				t.Errorf("%v: no commit within %d requests", c, o.MaxRequests)
			}
		}
		removed(t, s, service)
		if used, most := service.Requests(), o.most(); used > most {
			t.Errorf("%d requests, %d are announced", used, most)
		}
	})
}

func TestACellEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		service := far()
		s := siteOf(t, service)
		o := all(8, 500*time.Millisecond, 2000)
		for _, c := range o.cells() {
			m, err := s.measure(t.Context(), c, o)
			if err != nil {
				t.Fatal(err)
			}
			if m.ElapsedMS > 550 || m.Commits == 0 {
				t.Errorf("%v: %d commits in %v ms", c, m.Commits, m.ElapsedMS)
			}
			if m.P50MS <= 0 || m.P50MS > m.P99MS || c.Way != shared && m.P50MS < 10 {
				t.Errorf("%v: p50 %v, p99 %v", c, m.P50MS, m.P99MS)
			}
		}
		removed(t, s, service)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%v", took)
		}
	})
}

// An interrupted run leaves nothing: neither what it has created, nor a lease that keeps others out until it expires.
func TestAnInterruptedCellLeavesNothing(t *testing.T) {
	o := all(8, time.Hour, 1<<20)
	for _, c := range o.cells() {
		t.Run(c.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := far()
				s := siteOf(t, service)
				ctx, cancel := context.WithCancelCause(t.Context())
				stop := errors.New("interrupted")
				during := 100 * time.Millisecond
				if c.Workload == "lock" {
					during = 2500 * time.Millisecond // the first holder of a lock waits
				}
				time.AfterFunc(during, func() { cancel(stop) })
				if _, err := s.measure(ctx, c, o); !errors.Is(err, stop) {
					t.Errorf("%v, want the cause of the context", err)
				}
				removed(t, s, service)
			})
		})
	}
}

// A loop that writes without a condition loses increments. The check of a cell notices that.
func TestALostCommitIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := far()
		s := siteOf(t, service)
		c := cell{"blob", plain, 2}
		if err := s.create(t.Context()); err != nil {
			t.Fatal(err)
		}
		w, err := s.counters(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.blob(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := write(t.Context(), p, counter{N: 19}, nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := w.check(t.Context(), 19); err != nil {
			t.Error(err)
		}
		if err := w.check(t.Context(), 20); err == nil || !strings.Contains(err.Error(), "20 commits were reported, and 19 are stored: some are lost") {
			t.Errorf("%v, want that commits are lost", err)
		}
		removed(t, s, service)
	})
}

func TestACellWhoseCommitsFailIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := far()
		s := siteOf(t, service)
		service.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Match: aztest.Op("Get Blob")})
		_, err := s.measure(t.Context(), cell{"blob", plain, 2}, all(2, time.Hour, 5000))
		if err == nil || !strings.HasPrefix(err.Error(), "blob, plain loop, 2 clients: ") {
			t.Errorf("%v, want the cell and the refusal", err)
		}
		service.SetFaults()
		removed(t, s, service)
	})
}

// The figures of a cell are those after its first fifth.
func TestTheFirstCommitsAreNotCounted(t *testing.T) {
	r := &recorder{meter: new(meter), began: time.Now()}
	for i := range 10 {
		at := time.Duration(i+1) * time.Second
		if i < 2 {
			at = time.Duration(i+1) * time.Millisecond
		}
		r.commits = append(r.commits, commit{i % 2, at, time.Duration(i+1) * time.Millisecond, int64(3 * (i + 1))})
	}
	m := r.result(cell{"blob", azconc, 2})
	if m.Commits != 8 || m.Requests != 24 || m.RequestsPerCommit != 3 || m.ElapsedMS != 9998 || m.P50MS != 7 || m.P99MS != 10 || m.Least == nil || *m.Least != 1 {
		t.Errorf("%+v", m)
	}
	r.commits = r.commits[:3]
	if m := r.result(cell{"blob", azconc, 2}); m.Commits != 3 || m.Requests != 9 || m.Least != nil {
		t.Errorf("%+v", m)
	}
	r.commits = nil
	if m := r.result(cell{"blob", azconc, 1}); m.Commits != 0 || m.CommitsPerS != 0 || m.P50MS != 0 {
		t.Errorf("%+v", m)
	}
}
