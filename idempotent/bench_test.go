//go:build unix

package idempotent

import (
	"context"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// benchMode is a way to consume messages, and a bare loop on the SDK that sends the same requests.
type benchMode struct {
	name    string
	consume func(f *far, n int)
	table   func(f *far) bareTable // what the bare loop writes besides; nil for nothing
}

const benchWorkers = 8

var benchModes = []benchMode{
	{"none", func(f *far, n int) { f.ours(n, ConsumerOptions{Concurrency: benchWorkers}) }, nil},
	{"owner", func(f *far, n int) { f.ours(n, ConsumerOptions{Concurrency: benchWorkers, Markers: f.markers}) }, bareMarkers},
	{"inbox", func(f *far, n int) {
		f.oursWith(n, ConsumerOptions{Concurrency: benchWorkers, Dedupe: DedupeInbox}, func(ctx context.Context, m *Message) error {
			return f.inbox.Apply(ctx, m, "p", upsertEffect(m))
		})
	}, bareInbox},
}

// bareMarkers writes the messages of each receive in one transaction, twice, as a claim and a completion do.
func bareMarkers(f *far) bareTable {
	return bareTable{batch: func(batch []*azqueue.DequeuedMessage) {
		for _, state := range []string{"owned", "done"} {
			var actions []aztables.TransactionAction
			for _, m := range batch {
				actions = append(actions, aztables.TransactionAction{ActionType: aztables.TransactionTypeInsertReplace, Entity: f.bareEntity("orders", "k-"+*m.MessageID, state)})
			}
			if _, err := f.tables("markers").SubmitTransaction(context.Background(), actions, nil); err != nil {
				f.t.Error(err)
			}
		}
	}}
}

// bareInbox writes two entities in one transaction for each message, as an effect and its marker.
func bareInbox(f *far) bareTable {
	return bareTable{message: func(m *azqueue.DequeuedMessage) {
		if _, err := f.effects.SubmitTransaction(context.Background(), []aztables.TransactionAction{
			{ActionType: aztables.TransactionTypeAdd, Entity: f.bareEntity("p", "azconcinbox-orders."+*m.MessageID, "applied")},
			{ActionType: aztables.TransactionTypeInsertReplace, Entity: f.bareEntity("p", "effect-"+*m.MessageID, "1")},
		}, nil); err != nil {
			f.t.Error(err)
		}
	}}
}

func (f *far) bareEntity(partition, row, state string) []byte {
	text, err := markers.Marker{Owner: row, State: state, Expires: time.Now(), Until: time.Now()}.Encode(partition, row)
	if err != nil {
		f.t.Error(err)
	}
	return text
}

// benchMessages is the most that a queue holds in a measurement: in memory, a queue is slow when it is long. A short run shows
// that the benchmark works.
func benchMessages() int {
	if testing.Short() {
		return 64
	}
	return 960
}

// cost is that of consuming some messages.
type cost struct {
	cpu, wall time.Duration
	allocs    float64
}

// spent returns the cost of consuming a queue of n messages.
func (f *far) spent(n int, consume func(f *far, n int)) cost {
	f.fill(n)
	if f.service != nil {
		f.service.Reset() // drops the log, which is for tests to read
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, start := processorTime(), time.Now()
	consume(f, n)
	c := cost{cpu: processorTime() - began, wall: time.Since(start)}
	runtime.ReadMemStats(&after)
	c.allocs = float64(after.Mallocs - before.Mallocs)
	return c
}

// fastest returns, per message, the mean of the fastest quarter of the rounds, in processor time and in wall time: other work on
// the machine makes rounds slower, never faster.
func fastest(rounds []cost) (cpu, wall, allocs float64) {
	mean := func(of func(c cost) float64) (sum float64) {
		all := make([]float64, len(rounds))
		for i, c := range rounds {
			all[i] = of(c)
		}
		slices.Sort(all)
		few := all[:(len(all)+3)/4]
		for _, v := range few {
			sum += v
		}
		return sum / float64(len(few)) / float64(benchMessages())
	}
	return mean(func(c cost) float64 { return float64(c.cpu) }), mean(func(c cost) float64 { return float64(c.wall) }), mean(func(c cost) float64 { return c.allocs })
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkConsume compares, in one run, the processor time that a message takes in this process with that in a bare loop that
// receives and deletes, and in one that also sends the mode's table requests, and the messages a second. In memory, it includes
// what the service takes. An operation is a message, rounded up to rounds of 960 in turns; the start and the end of a Consumer
// are included. Run it with at least -benchtime 7680x: of the rounds of each side, the fastest quarter counts.
func BenchmarkConsume(b *testing.B) {
	b.Run("memory", func(b *testing.B) {
		benchmarkConsume(b, func(b *testing.B) *far {
			f := &far{rig: newRigOn(b, aztest.New(nil))}
			f.tables = func(name string) *aztables.Client { return tableClient(b, f.service, name) }
			return f
		})
	})
	b.Run("azurite", func(b *testing.B) {
		account := azuritetest.Account(b)
		benchmarkConsume(b, func(b *testing.B) *far { return farOnAzurite(b, account) })
	})
}

func benchmarkConsume(b *testing.B, on func(*testing.B) *far) {
	for _, mode := range benchModes {
		b.Run(mode.name, func(b *testing.B) {
			f := on(b)
			var bare, same, ours []cost
			for left := b.N; left > 0; left -= benchMessages() {
				bare = append(bare, f.spent(benchMessages(), func(f *far, n int) { f.bare(benchWorkers, n, bareTable{}) }))
				if mode.table != nil {
					t := mode.table(f)
					same = append(same, f.spent(benchMessages(), func(f *far, n int) { f.bare(benchWorkers, n, t) }))
				}
				ours = append(ours, f.spent(benchMessages(), mode.consume))
			}
			if same == nil {
				same = bare
			}
			bareCPU, bareWall, bareAllocs := fastest(bare)
			sameCPU, sameWall, sameAllocs := fastest(same)
			cpu, wall, allocs := fastest(ours)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(bareCPU, "bare-cpu-ns/msg")
			b.ReportMetric(cpu, "cpu-ns/msg")
			b.ReportMetric(cpu/bareCPU, "x-bare")
			b.ReportMetric(cpu/sameCPU, "x-same-requests")
			b.ReportMetric(bareWall/wall, "rate-x-bare")
			b.ReportMetric(sameWall/wall, "rate-x-same-requests")
			b.ReportMetric(bareAllocs, "bare-allocs/msg")
			b.ReportMetric(sameAllocs, "same-allocs/msg")
			b.ReportMetric(allocs, "allocs/msg")
		})
	}
}

// TestAllocationsPerMessage bounds what a Consumer allocates in addition to a bare loop that sends the same requests. In a bubble, nothing
// is renewed or asked for again because the machine is slow.
func TestAllocationsPerMessage(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates")
	}
	most := map[string]float64{"none": 75, "owner": 190, "inbox": 420} // 58 ± 1, 147 ± 1 and 351 ± 1 were measured
	for _, mode := range benchModes {
		inBubble(t, func(t *testing.T, r *rig) {
			f := &far{rig: r}
			f.tables = func(name string) *aztables.Client { return tableClient(t, f.service, name) }
			var table bareTable
			if mode.table != nil {
				table = mode.table(f)
			}
			same := f.spent(benchMessages(), func(f *far, n int) { f.bare(benchWorkers, n, table) }).allocs / float64(benchMessages())
			ours := f.spent(benchMessages(), mode.consume).allocs / float64(benchMessages())
			t.Logf("%s: %.0f allocations per message, the same requests %.0f", mode.name, ours, same)
			if ours-same > most[mode.name] {
				t.Errorf("%s: %.0f allocations per message more than the same requests need, want %.0f at most", mode.name, ours-same, most[mode.name])
			}
		})
	}
}
