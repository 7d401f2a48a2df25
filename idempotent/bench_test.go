//go:build unix

package idempotent

import (
	"context"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

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
	{"redelivery", func(f *far, n int) {
		f.ours(n, ConsumerOptions{Concurrency: benchWorkers, Markers: f.markers, Dedupe: DedupeRedelivery})
	}, nil},
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

// benchMessages is the most that a queue holds in a measurement: in memory, a queue is slow when it is long.
const benchMessages = 960

// spent returns the processor time and the allocations of consuming a queue of n messages.
func (f *far) spent(n int, consume func(f *far, n int)) (cpu time.Duration, allocs float64) {
	f.fill(n)
	if f.service != nil {
		f.service.Reset() // drops the log, which is for tests to read
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := processorTime()
	consume(f, n)
	cpu = processorTime() - began
	runtime.ReadMemStats(&after)
	return cpu, float64(after.Mallocs - before.Mallocs)
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkConsume compares, in one run, the processor time that a message takes in this process with that in a bare loop that
// receives and deletes, and in one that also sends the mode's table requests. In memory, it includes what the service takes.
// An operation is a message. Run it with at least -benchtime 1000x: a Consumer's start and end are included.
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
			var bare, same, ours time.Duration
			var bareAllocs, sameAllocs, oursAllocs float64
			for left := b.N; left > 0; left -= benchMessages {
				n := min(left, benchMessages)
				cpu, allocs := f.spent(n, func(f *far, n int) { f.bare(benchWorkers, n, bareTable{}) })
				bare, bareAllocs = bare+cpu, bareAllocs+allocs
				if mode.table != nil {
					t := mode.table(f)
					cpu, allocs = f.spent(n, func(f *far, n int) { f.bare(benchWorkers, n, t) })
				}
				same, sameAllocs = same+cpu, sameAllocs+allocs
				cpu, allocs = f.spent(n, mode.consume)
				ours, oursAllocs = ours+cpu, oursAllocs+allocs
			}
			n := float64(b.N)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(bare)/n, "bare-cpu-ns/msg")
			b.ReportMetric(float64(ours)/n, "cpu-ns/msg")
			b.ReportMetric(float64(ours)/float64(bare), "x-bare")
			b.ReportMetric(float64(ours)/float64(same), "x-same-requests")
			b.ReportMetric(bareAllocs/n, "bare-allocs/msg")
			b.ReportMetric(sameAllocs/n, "same-allocs/msg")
			b.ReportMetric(oursAllocs/n, "allocs/msg")
		})
	}
}

// TestAllocationsPerMessage bounds what a Consumer allocates in addition to a bare loop that sends the same requests.
func TestAllocationsPerMessage(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates")
	}
	most := map[string]float64{"none": 45, "redelivery": 45, "owner": 190, "inbox": 340}
	for _, mode := range benchModes {
		f := &far{rig: newRigOn(t, aztest.New(nil))}
		f.tables = func(name string) *aztables.Client { return tableClient(t, f.service, name) }
		var table bareTable
		if mode.table != nil {
			table = mode.table(f)
		}
		_, same := f.spent(benchMessages, func(f *far, n int) { f.bare(benchWorkers, n, table) })
		_, ours := f.spent(benchMessages, mode.consume)
		same, ours = same/benchMessages, ours/benchMessages
		t.Logf("%s: %.0f allocations per message, the same requests %.0f", mode.name, ours, same)
		if ours-same > most[mode.name] {
			t.Errorf("%s: %.0f allocations per message more than the same requests need, want %.0f at most", mode.name, ours-same, most[mode.name])
		}
	}
}
