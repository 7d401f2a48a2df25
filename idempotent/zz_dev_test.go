package idempotent

import (
	"fmt"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/azconc/azconc/pkg/aztest"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/azurite"
)

func BenchmarkDev(b *testing.B) {
	host := os.Getenv("DEVQ")
	if host == "" {
		b.Skip()
	}
	account := azurite.Account{Name: os.Getenv("DEVNAME"), Key: os.Getenv("DEVKEY"), QueueURL: os.Getenv("DEVQ"), TableURL: os.Getenv("DEVT")}
	benchmarkConsume(b, func(b *testing.B) *far { return farOnAzurite(b, account) })
}

func BenchmarkOurs(b *testing.B) {
	account := azurite.Account{Name: os.Getenv("DEVNAME"), Key: os.Getenv("DEVKEY"), QueueURL: os.Getenv("DEVQ"), TableURL: os.Getenv("DEVT")}
	for _, mode := range benchModes {
		for _, how := range []string{"bare", "ours"} {
			b.Run(mode.name+"/"+how, func(b *testing.B) {
				f := farOnAzurite(b, account)
				var ours time.Duration
				for left := b.N; left > 0; left -= batchN {
					n := min(left, batchN)
					f.fill(n)
					runtime.GC()
					runtime.GC()
					pprof.StartCPUProfile(open(b))
					t0 := processorTime()
					if how == "bare" {
						f.bare(benchWorkers, n, bareTable{})
					} else {
						mode.consume(f, n)
					}
					ours += processorTime() - t0
					pprof.StopCPUProfile()
				}
				b.ReportMetric(float64(ours)/float64(b.N), "cpu-ns/msg")
			})
		}
	}
}

var nth int

func open(b *testing.B) *os.File {
	nth++
	f, err := os.Create(fmt.Sprintf("/tmp/prof/%s-%d.prof", strings.ReplaceAll(b.Name(), "/", "-"), nth))
	if err != nil {
		b.Fatal(err)
	}
	return f
}

func BenchmarkMem(b *testing.B) {
	for _, mode := range benchModes {
		for _, how := range []string{"bare", "ours"} {
			b.Run(mode.name+"/"+how, func(b *testing.B) {
				f := &far{rig: newRigOn(b, aztest.New(nil))}
				f.tables = func(name string) *aztables.Client { return tableClient(b, f.service, name) }
				var ours time.Duration
				for left := b.N; left > 0; left -= batchN {
					n := min(left, batchN)
					f.fill(n)
					f.service.Reset()
					runtime.GC()
					pprof.StartCPUProfile(open(b))
					t0 := processorTime()
					if how == "bare" {
						f.bare(benchWorkers, n, bareTable{})
					} else {
						mode.consume(f, n)
					}
					ours += processorTime() - t0
					pprof.StopCPUProfile()
				}
				b.ReportMetric(float64(ours)/float64(b.N), "cpu-ns/msg")
			})
		}
	}
}

var batchN = func() int {
	n := 960
	fmt.Sscan(os.Getenv("BATCHN"), &n)
	return n
}()
