package workload

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// BenchmarkMatrix measures every workload in every way, on the service in memory. An operation is a commit, after four for each
// client, in which the clients settle. At round trips of 5 and 20 ms the time is simulated: figures are those of a machine whose
// processor takes no time, and ns/op is a time of the simulation. Ways stand side by side for benchstat -col /way:
//
//	scripts/bench -bench 'Matrix/rtt=5ms/workload=blob/clients=32' -benchtime 500x ./cmd/azconc/internal/workload
//
// With -short, which scripts/check gives, crowds of more than 8 and the round trip of 20 ms are left out.
func BenchmarkMatrix(b *testing.B) {
	for _, rtt := range []time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond} {
		if rtt > 5*time.Millisecond && testing.Short() {
			continue
		}
		for _, c := range matrix() {
			b.Run(fmt.Sprintf("rtt=%dms/%s", rtt.Milliseconds(), named(c)), func(b *testing.B) {
				if rtt == 0 {
					benchmark(b, b, siteOf(b, far(0)), c)
					return
				}
				inBubble(b, func(t *testing.T) { benchmark(b, t, siteOf(t, far(rtt)), c) })
			})
		}
	}
}

// BenchmarkAzurite measures the counters on a real Azurite, which is one Node process.
//
//	scripts/bench -bench 'Azurite/workload=blob/clients=8' -benchtime 3000x ./cmd/azconc/internal/workload
func BenchmarkAzurite(b *testing.B) {
	for _, c := range matrix() {
		if c.Workload != Blob && c.Workload != Entity || c.Clients < 8 {
			continue
		}
		b.Run(named(c), func(b *testing.B) {
			emulator := azuritetest.Account(b)
			account, err := azaccount.Resolve(azaccount.Flags{ConnectionString: emulator.ConnectionString()}, func(string) string { return "" })
			if err != nil {
				b.Fatal(err)
			}
			transport := &http.Transport{MaxIdleConnsPerHost: c.Clients}
			b.Cleanup(transport.CloseIdleConnections)
			benchmark(b, b, New(account, func() azcore.ClientOptions {
				return azcore.ClientOptions{Transport: &http.Client{Transport: transport}}
			}), c)
		})
	}
}

// matrix returns the cells of the benchmarks.
func matrix() []Cell {
	cells := Cells(nil, nil)
	if !testing.Short() {
		return cells
	}
	return slices.DeleteFunc(cells, func(c Cell) bool { return c.Clients > 8 || c.Clients == 2 })
}

func named(c Cell) string {
	return fmt.Sprintf("workload=%s/clients=%d/way=%s", c.Workload, c.Clients, strings.ReplaceAll(c.Way, " ", "-"))
}

// benchmark runs c for b, inside its bubble if it is in one.
func benchmark(b *testing.B, inside testing.TB, s *Site, c Cell) {
	defer func() {
		if left, err := s.Remove(inside.Context()); err != nil {
			b.Errorf("%v is left: %v", left, err)
		}
	}()
	if err := s.Create(inside.Context(), []Cell{c}); err != nil {
		b.Fatal(err)
	}
	m, err := s.Run(inside.Context(), c, Bounds{Commits: b.N})
	if err != nil {
		b.Fatal(err)
	}
	if m.Elapsed > 0 {
		b.ReportMetric(float64(m.Elapsed)/float64(m.Commits), "ns/op")
		b.ReportMetric(m.Rate(), "commits/s")
	}
	b.ReportMetric(m.PerCommit(), "requests/op")
	for _, q := range []int{50, 99} {
		if took, known := m.Quantile(float64(q) / 100); known {
			b.ReportMetric(took.Seconds()*1000, fmt.Sprintf("p%d-ms", q))
		}
	}
	if m.Least >= 0 {
		b.ReportMetric(m.Least, "least/mean")
	}
}

// inBubble runs f in a bubble of testing/synctest, which takes a *testing.T. There is no other way to one in a benchmark than to run
// a test inside it.
func inBubble(b *testing.B, f func(t *testing.T)) {
	b.Helper()
	ran := false
	all := func(_, _ string) (bool, error) { return true, nil }
	ok := testing.RunTests(all, []testing.InternalTest{{Name: b.Name(), F: func(t *testing.T) {
		if !ran { // once, whatever -count says
			ran = true
			synctest.Test(t, f)
		}
	}}})
	if !ok || !ran {
		b.Fatal("the simulation has failed")
	}
}
