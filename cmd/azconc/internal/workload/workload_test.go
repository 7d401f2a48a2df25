package workload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	blobservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/pkg/aztest"
)

// siteOf returns a Site on the service in memory.
func siteOf(tb testing.TB, s *aztest.Service) *Site {
	tb.Helper()
	account, err := azaccount.Resolve(azaccount.Flags{ConnectionString: fmt.Sprintf(
		"DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;BlobEndpoint=%s;QueueEndpoint=%s;TableEndpoint=%s;",
		aztest.Account, aztest.Key, s.BlobURL(), s.QueueURL(), s.TableURL())}, func(string) string { return "" })
	if err != nil {
		tb.Fatal(err)
	}
	return New(account, s.ClientOptions)
}

// far is a service to which a round trip takes that long.
func far(rtt time.Duration) *aztest.Service {
	if rtt == 0 {
		return aztest.New(nil)
	}
	return aztest.New(&aztest.Options{Latency: func() time.Duration { return rtt }})
}

// only returns the cells of a workload with that many clients.
func only(workload string, clients int) []Cell { return Cells([]string{workload}, []int{clients}) }

// measure runs cells on a site of their own, 5 ms away, and removes everything.
func measure(t *testing.T, cells []Cell, b Bounds) []Measured {
	t.Helper()
	service := far(5 * time.Millisecond)
	s := siteOf(t, service)
	if err := s.Create(t.Context(), cells); err != nil {
		t.Fatal(err)
	}
	var all []Measured
	for _, c := range cells {
		m, err := s.Run(t.Context(), c, b)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	removed(t, s, service)
	return all
}

// removed removes what s has created, and looks whether anything is there.
func removed(t *testing.T, s *Site, service *aztest.Service) {
	t.Helper()
	if left, err := s.Remove(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("%v is left: %v", left, err)
	}
	if names := everything(t, service); len(names) != 0 {
		t.Errorf("%q are left", names)
	}
}

// everything returns the names of what is in the account.
func everything(t *testing.T, service *aztest.Service) (names []string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	s := siteOf(t, service)
	queues, err := s.queues(nil)
	if err != nil {
		t.Fatal(err)
	}
	for pager := queues.NewListQueuesPager(nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range page.Queues {
			names = append(names, *q.Name)
		}
	}
	tables, err := s.tables(nil)
	if err != nil {
		t.Fatal(err)
	}
	for pager := tables.NewListTablesPager(nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range page.Tables {
			names = append(names, *q.Name)
		}
	}
	boxes, err := s.account.BlobService(&blobservice.ClientOptions{ClientOptions: service.ClientOptions()})
	if err != nil {
		t.Fatal(err)
	}
	for pager := boxes.NewListContainersPager(nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.ContainerItems {
			names = append(names, *c.Name)
		}
	}
	return names
}

// A client without others sends what the documentation says, to the request. So a change of a workload, or of azconc, that sends
// more is seen.
func TestACommitCostsTheseRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := map[Cell]float64{
			{Blob, Azconc, 1}: 2, {Blob, Plain, 1}: 2, {Blob, Jitter, 1}: 2, {Blob, Lease, 1}: 4,
			{Entity, Azconc, 1}: 2, {Entity, Plain, 1}: 2, {Entity, Jitter, 1}: 2, {Entity, Lease, 1}: 4,
			{Document, Azconc, 1}: 2, {Document, Shared, 1}: 1,
			// A process that comes back within 0.1 s knows the lock that it left; only the first turn costs a look. One that has held a
			// lock for 0.1 s, in one turn or in several, looks for waiters: 4 times in 32 turns of 15 ms.
			{Lock, Azconc, 1}: 3 + 5.0/32, {Lock, Shared, 1}: 3 + 5.0/32, {Lock, Lease, 1}: 2,
			{TableLock, Azconc, 1}: 6 + 8.0/32, {TableLock, Lease, 1}: 4,
			{Consume, BareLoop, 1}: 1 + 1.0/32,
		}
		var cells []Cell
		for _, k := range Kinds() {
			cells = append(cells, only(k.Name, 1)...)
		}
		for _, m := range measure(t, cells, Bounds{Commits: 32}) {
			if m.Commits != 32 || m.Failed != 0 || m.Rate() <= 0 {
				t.Errorf("%v: %d commits of 32, %d failed, %.1f/s", m.Cell, m.Commits, m.Failed, m.Rate())
			}
			if n, exact := want[m.Cell]; exact && math.Abs(m.PerCommit()-n) > 0.001 {
				t.Errorf("%v: %.3f requests per commit, want %.3f", m.Cell, m.PerCommit(), n)
			}
			t.Logf("%v: %.3f requests per commit, %.1f/s", m.Cell, m.PerCommit(), m.Rate())
		}
	})
}

// The number of requests that a user agrees to is one that the run does not exceed, whatever the workload.
func TestARunStaysWithinItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := far(5 * time.Millisecond)
		s := siteOf(t, service)
		var cells []Cell
		for _, k := range Kinds() {
			cells = append(cells, only(k.Name, 8)...)
		}
		if err := s.Create(t.Context(), cells); err != nil {
			t.Fatal(err)
		}
		b := Bounds{Requests: 150}
		for _, c := range cells {
			before := service.Requests()
			m, err := s.Run(t.Context(), c, b)
			if err != nil {
				t.Fatal(err)
			}
			if used, most := service.Requests()-before, Cost([]Cell{c}, b)-Cost(nil, b); used > most {
				t.Errorf("%v: %d requests, %d are announced", c, used, most)
			}
			if m.Commits == 0 {
				t.Errorf("%v: no commit within %d requests", c, b.Requests)
			}
		}
		removed(t, s, service)
		if used, most := service.Requests(), Cost(cells, b); used > most {
			t.Errorf("%d requests, %d are announced", used, most)
		}
	})
}

func TestACellEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		cells := append(only(Blob, 8), Cell{Consume, BareLoop, 1})
		for _, m := range measure(t, cells, Bounds{For: 500 * time.Millisecond, Requests: 2000}) {
			if m.Elapsed > 500*time.Millisecond || m.Commits == 0 || m.Workload == Blob && m.Elapsed < 500*time.Millisecond {
				t.Errorf("%v: %d commits in %v", m.Cell, m.Commits, m.Elapsed)
			}
			p50, known := m.Quantile(0.5)
			p99, _ := m.Quantile(0.99)
			if known != (m.Workload == Blob) || p50 > p99 || known && p50 < 10*time.Millisecond {
				t.Errorf("%v: p50 %v, p99 %v, %v", m.Cell, p50, p99, known)
			}
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%v", took)
		}
	})
}

// An interrupted run leaves nothing: neither what it has created, nor a lease that keeps others out until it expires.
func TestAnInterruptedRunLeavesNothing(t *testing.T) {
	for _, k := range Kinds() {
		for _, c := range only(k.Name, 8) {
			t.Run(c.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					service := far(5 * time.Millisecond)
					s := siteOf(t, service)
					ctx, cancel := context.WithCancelCause(t.Context())
					stop := errors.New("interrupted")
					during, b := 100*time.Millisecond, Bounds{Commits: 1 << 20}
					switch c.Workload {
					case Lock, TableLock:
						during = 2500 * time.Millisecond // the first holder of a lock waits
					case Consume:
						during, b.Commits = 60*time.Millisecond, 100 // which are sent in 35 ms, and not handled in 25
					}
					time.AfterFunc(during, func() { cancel(stop) })
					if err := s.Create(ctx, []Cell{c}); err != nil {
						t.Fatal(err)
					}
					if _, err := s.Run(ctx, c, b); !errors.Is(err, stop) {
						t.Errorf("%v, want the cause of the context", err)
					}
					removed(t, s, service)
				})
			})
		}
	}
}

func TestWhatCannotBeDeletedIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := far(0)
		s := siteOf(t, service)
		cells := append(only(Blob, 1), only(Consume, 1)...)
		if err := s.Create(t.Context(), cells); err != nil {
			t.Fatal(err)
		}
		for _, c := range cells {
			if _, err := s.Run(t.Context(), c, Bounds{Commits: 1}); err != nil {
				t.Fatal(err)
			}
		}
		service.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Match: aztest.Op("Delete Container", "Delete Table")})
		left, err := s.Remove(t.Context())
		want := []Resource{{"container", s.Name()}, {"table", s.table("data")}, {"table", s.table("markers")}}
		if !slices.Equal(left, want) || err == nil {
			t.Errorf("%v is left, %v; want %v and a reason", left, err, want)
		}
		service.SetFaults()
		removed(t, s, service)
	})
}

// A loop that writes without a condition loses increments. The check of a cell is what would notice that in any way.
func TestALostCommitIsNoticed(t *testing.T) {
	if missing(9, 10) == nil || missing(10, 10) != nil || missing(11, 10) != nil {
		t.Error("a counter below the number of commits is the only one that convicts")
	}
	synctest.Test(t, func(t *testing.T) {
		service := far(5 * time.Millisecond)
		s := siteOf(t, service)
		if err := s.Create(t.Context(), only(Blob, 1)); err != nil {
			t.Fatal(err)
		}
		s.cells++
		m := &meter{}
		all, err := s.counters(t.Context(), Cell{Blob, Plain, 2}, m)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.place(m, Cell{Blob, Plain, 2})
		if err != nil {
			t.Fatal(err)
		}
		for i := range all.clients {
			all.clients[i] = func(ctx context.Context) error {
				c, _, err := p.read(ctx)
				if err == nil {
					_, err = p.blob.Upload(ctx, content(c.N+1), nil)
				}
				return err
			}
		}
		if _, err := all.run(t.Context(), Cell{Blob, Plain, 2}, Bounds{Commits: 20}, m); err == nil || !strings.Contains(err.Error(), "some are lost") {
			t.Errorf("%v, want that commits are lost", err)
		}
		removed(t, s, service)
	})
}

func TestACellWhoseCommitsFailIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := far(time.Millisecond)
		s := siteOf(t, service)
		if err := s.Create(t.Context(), only(Blob, 1)); err != nil {
			t.Fatal(err)
		}
		service.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Match: aztest.Op("Get Blob")})
		_, err := s.Run(t.Context(), Cell{Blob, Plain, 2}, Bounds{For: time.Hour})
		if err == nil || !strings.HasPrefix(err.Error(), "blob, plain loop, 2 clients: ") {
			t.Errorf("%v, want the cell and the refusal", err)
		}
		service.SetFaults()
		removed(t, s, service)
	})
}
