// Package bench has azconc bench, which measures azconc beside the loops that programs use without it, on one blob, one lock and
// one queue.
//
// Clients are goroutines with SDK clients of their own, in one process. On a service that is near, such as an emulator on the same
// machine, its processors limit every way alike.
package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
)

type options struct {
	Workloads   []string
	Clients     []int
	For         time.Duration // of a cell
	MaxRequests int           // of a cell; a request of each client may follow, and a release
	Yes         bool
}

// NewCmd returns azconc bench.
func NewCmd(f *cli.Factory) *cobra.Command { return verb().Command(f) }

// mostClients bounds --clients: so many connections the command keeps to a service. With fewer than there are clients, these would wait
// for one another to connect.
const mostClients = 64

func verb() cli.Verb[options] {
	return cli.Verb[options]{
		Use:   "bench",
		Short: "Measure azconc beside loops without it, on an account or an emulator",
		Long: `Measure azconc beside the loops that programs use without it: commits a second, requests per commit, latency, and how evenly the
clients share.

` + workloadHelp() + `
Each is measured in several ways. A plain loop reads, writes with If-Match, and starts over on 412; full jitter is the same with
pauses; lease acquires the lease of the blob around it; one process is azconc with one Document or Locker for all clients. For
consume, the ways are a loop that receives and deletes, and the modes of --dedupe and --inbox of azconc queue consume.

Without an account in flags or environment, the service in memory is started, with requests that take 5 ms. To measure Azurite, run
azconc dev run --engine azurite -- azconc bench.

In an account, a container, a table and a queue with names of their own, which begin with azconc-bench or azconcbench, are created and
deleted at the end, also after an interrupt; what cannot be deleted is named. A real account charges for requests: how many there
will be at most is printed, and a question asked, before the first one.

A cell, which is a workload in one way with some clients, ends after --for or --max-requests. The first fifth of its increments and
acquisitions is not counted. All clients run in this process, so on an emulator on this machine its processors may be the limit.`,
		Example: `  azconc bench
  azconc bench --workload blob,lock --clients 1,8 --for 3s
  azconc bench --account-name mine --workload blob --clients 8 --max-requests 1000 --yes -o json`,
		Flags: func(opts *options, set *pflag.FlagSet) {
			set.StringSliceVar(&opts.Workloads, "workload", names(), "`names` of workloads, with commas between them")
			set.IntSliceVar(&opts.Clients, "clients", []int{1, 8, 32}, "`numbers` of clients, with commas between them")
			opts.For = 2 * time.Second
			flags.Duration(set, &opts.For, "for", false, "end a cell after this long")
			opts.MaxRequests = 5000
			flags.Int(set, &opts.MaxRequests, "max-requests", 1, "end a cell after this many requests")
			set.BoolVar(&opts.Yes, "yes", false, "do not ask before requests to a real account")
		},
		Parse: parse,
		Run:   run,
	}
}

// workloadHelp describes the workloads.
func workloadHelp() string {
	var b strings.Builder
	for _, w := range workloads {
		fmt.Fprintf(&b, "  %-8s %s\n", w.name, w.what)
	}
	return b.String()
}

func names() (names []string) {
	for _, w := range workloads {
		names = append(names, w.name)
	}
	return names
}

func parse(opts *options, _ cli.Input) error {
	for _, name := range opts.Workloads {
		if !slices.Contains(names(), name) {
			return fail.Usagef("--workload %q is none of %s", name, strings.Join(names(), ", "))
		}
	}
	for i, n := range opts.Clients {
		switch {
		case n < 1 || n > mostClients:
			return fail.Usagef("--clients %d is not between 1 and %d", n, mostClients)
		case slices.Contains(opts.Clients[:i], n):
			return fail.Usagef("--clients has %d twice", n)
		}
	}
	return nil
}
