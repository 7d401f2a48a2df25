package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/engine"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/workload"
)

// given is the value of --engine for the account that flags and environment name.
const given = "auto"

type options struct {
	Engine      string // given, engine.Memory or engine.Azurite
	RoundTrip   time.Duration
	Workloads   []string
	Clients     []int // none for those of each workload
	For         time.Duration
	Commits     int
	MaxRequests int
	HTML        string
	Yes         bool
}

// NewCmd returns azconc bench.
func NewCmd(f *cli.Factory) *cobra.Command { return verb().Command(f) }

// mostClients bounds --clients: each client is a goroutine with connections of its own.
const mostClients = 1000

func verb() cli.Verb[options] {
	return cli.Verb[options]{
		Use:   "bench",
		Short: "Measure azconc beside loops without it, on an account or an emulator",
		Long: `Measure azconc beside the loops that programs use without it: commits a second, requests per commit, latency, and how evenly the
clients share.

` + workloadHelp() + `
Each is measured in several ways. A plain loop reads, writes with If-Match, and starts over on 412; full jitter is the same with
pauses; lease acquires the lease of a blob around it; one process is azconc with one Document or Locker for all clients. For
consume, the ways are a loop that receives and deletes, and the modes of --dedupe and --inbox of azconc queue consume.

Without an account in flags or environment, the service in memory is started, as by azconc demo. With an account, a container,
tables and queues with names of their own, which begin with azconc-bench or azconcbench, are created there and deleted at the
end, also after an interrupt; what cannot be deleted is named. A real account charges for requests: how many there will be at
most is printed, and a question asked, before the first one.

A cell, which is a workload in one way with some clients, ends after --for, --commits or --max-requests. All clients run in this
process, so on an emulator on this machine its processors may be the limit.`,
		Example: `  azconc bench
  azconc bench --workload blob,lock --clients 1,8,32 --for 3s --html bench.html
  azconc bench --account-name mine --workload blob --clients 8 --max-requests 1000 --yes -o json`,
		Flags: func(opts *options, set *pflag.FlagSet) {
			flags.OneOf(set, &opts.Engine, "engine", "where; auto: the account, or memory if none is given", given, engine.Memory, engine.Azurite)
			opts.RoundTrip = 5 * time.Millisecond
			flags.Duration(set, &opts.RoundTrip, "round-trip", true, "what each request to the service in memory takes at least, as over a network")
			set.StringSliceVar(&opts.Workloads, "workload", nil, "`names` of workloads, with commas between them; default all")
			flags.Words(set, "workload", workloads())
			set.IntSliceVar(&opts.Clients, "clients", nil, "`numbers` of clients, with commas between them; default 1,2,8,32,128 for blob and entity, others for the rest")
			opts.For = 2 * time.Second
			flags.Duration(set, &opts.For, "for", false, "end a cell after this long; before it the clients settle, for as long at most")
			flags.Int(set, &opts.Commits, "commits", 1, "end a cell after this many commits; without --for, whatever the time")
			opts.MaxRequests = 5000
			flags.Int(set, &opts.MaxRequests, "max-requests", 1, "end a cell after this many requests")
			set.StringVar(&opts.HTML, "html", "", "write a page with plots to this `file`")
			set.BoolVar(&opts.Yes, "yes", false, "do not ask before requests to a real account")
		},
		Parse: parse,
		Run:   run,
	}
}

// workloadHelp describes the workloads.
func workloadHelp() string {
	var b strings.Builder
	for _, k := range workload.Kinds() {
		fmt.Fprintf(&b, "  %-11s %s\n", k.Name, k.What)
	}
	return b.String()
}

func workloads() (names []string) {
	for _, k := range workload.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

func parse(opts *options, in cli.Input) error {
	names := workloads()
	for _, name := range opts.Workloads {
		if !slices.Contains(names, name) {
			return fail.Usagef("--workload %q is none of %s", name, strings.Join(names, ", "))
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
	slices.Sort(opts.Clients)
	if opts.Engine == engine.Azurite && in.Flags.Changed("round-trip") {
		return fail.WithHint(fail.Usagef("--round-trip is of the service in memory"), "give --engine memory")
	}
	if opts.Commits > 0 && !in.Flags.Changed("for") {
		opts.For = 0
	}
	return nil
}

func (o *options) cells() []workload.Cell { return workload.Cells(o.Workloads, o.Clients) }

func (o *options) bounds() workload.Bounds {
	return workload.Bounds{For: o.For, Commits: o.Commits, Requests: o.MaxRequests}
}
