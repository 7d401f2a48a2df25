// Package bench has azconc bench, which measures azconc beside the loops that programs use without it, on one blob and on one
// lock.
//
// Clients are goroutines in one process. On a service that is near, such as an emulator on the same
// machine, its processors limit every way alike.
package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/engine"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

type options struct {
	Workloads   []string
	Clients     []int
	For         time.Duration // of a cell
	MaxRequests int           // of a cell; a request of each client may follow, and a release
	Yes         bool
}

// NewCmd returns azconc bench.
func NewCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure azconc beside loops without it, on an account or an emulator",
		Long: `Measure azconc beside the loops that programs use without it: commits a second, requests per commit, latency, and how evenly the
clients share.

` + workloadHelp() + `
Each is measured in several ways. A plain loop reads, writes with If-Match, and starts over on 412; full jitter is the same with
pauses; lease acquires the lease of the blob around it; one process is azconc with one Document or Locker for all clients.

Without an account in flags or environment, the service in memory is started, with requests that take 5 ms. To measure Azurite, run
azconc dev run --engine azurite -- azconc bench.

In an account, a container with a name of its own, which begins with azconc-bench-, is created, and deleted at the end, also after an
interrupt; if it cannot be deleted, it is named. A real account charges for requests: how many there
will be at most is printed, and a question asked, before the first one.

A cell, which is a workload in one way with some clients, ends after --for or --max-requests. The first fifth of its increments and
acquisitions is not counted. All clients run in this process, so on an emulator on this machine its processors may be the limit.`,
		Example: `  azconc bench
  azconc bench --workload blob,lock --clients 1,8 --for 3s
  azconc bench --account-name mine --workload blob --clients 8 --max-requests 1000 --yes -o json`,
	}
	set, opts := cmd.Flags(), &options{For: 2 * time.Second, MaxRequests: 5000}
	set.StringSliceVar(&opts.Workloads, "workload", names(), "`names` of workloads, with commas between them")
	_ = cmd.RegisterFlagCompletionFunc("workload", cobra.FixedCompletions(names(), cobra.ShellCompDirectiveNoFileComp)) // fails without the flag
	set.IntSliceVar(&opts.Clients, "clients", []int{1, 8, 32}, "`numbers` of clients, with commas between them")
	flags.Duration(set, &opts.For, "for", false, "end a cell after this long")
	flags.Int(set, &opts.MaxRequests, "max-requests", 1, "end a cell after this many requests")
	set.BoolVar(&opts.Yes, "yes", false, "do not ask before requests to a real account")
	parse := func() (*options, error) { return opts, opts.check() }
	return cli.OnAccount(f, cmd, parse, func(ctx context.Context, opts *options) (cli.Result, error) { return run(ctx, f, opts) })
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

// mostClients bounds --clients: so many connections the command keeps to a service. With fewer than there are clients, these would wait
// for one another to connect.
const mostClients = 64

func (o *options) check() error {
	for _, name := range o.Workloads {
		if !slices.Contains(names(), name) {
			return fail.Usagef("--workload %q is none of %s", name, strings.Join(names(), ", "))
		}
	}
	for i, n := range o.Clients {
		switch {
		case n < 1 || n > mostClients:
			return fail.Usagef("--clients %d is not between 1 and %d", n, mostClients)
		case slices.Contains(o.Clients[:i], n):
			return fail.Usagef("--clients has %d twice", n)
		}
	}
	return nil
}

func run(ctx context.Context, f *cli.Factory, opts *options) (cli.Result, error) {
	account, where, stop, err := accountOf(ctx, f)
	if err != nil {
		return nil, err
	}
	defer stop()
	cells := opts.cells()
	if !account.Emulator(azaccount.Blob) {
		if agreed, err := agreed(ctx, f, opts, where); err != nil {
			return nil, err
		} else if !agreed {
			return result{Outcome: "declined", Service: where, Cells: []measured{}, Cost: f.Cost()}, nil
		}
	}
	s := newSite(f)
	r := result{Outcome: "done", Service: where, Cells: []measured{}, CPUs: runtime.NumCPU()}
	f.Notef("measuring %s on %s, each for up to %s", show.Plural(len(cells), "cell"), where, show.Duration(opts.For))
	progress := f.Progress("measuring")
	for i, c := range cells {
		progress.Say(fmt.Sprintf("%d of %d: %s", i+1, len(cells), c))
		var m measured
		if m, err = s.measure(ctx, c, opts); err != nil {
			break
		}
		r.Cells = append(r.Cells, m)
	}
	progress.End()
	s.remove(ctx)
	r.Cost = f.Cost()
	if err == nil {
		return r, nil
	}
	if !f.JSON() && len(r.Cells) > 0 { // with JSON, the object of the error has them
		if problem := f.Print(r); problem != nil {
			return nil, problem
		}
	}
	return nil, fail.WithFacts(err, map[string]any{
		"service": r.Service, "cells": r.Cells, "requests": r.Requests, "elapsed_ms": r.ElapsedMS,
	})
}

// roundTrip is the least time that a request to the service in memory takes, as over a network.
const roundTrip = 5 * time.Millisecond

// accountOf returns the account that flags and environment name, or the service in memory if there is none, what to call it, and what
// stops it at the end.
func accountOf(ctx context.Context, f *cli.Factory) (account *azaccount.Account, name string, stop func(), err error) {
	if account, err = f.Account(); err != nil {
		return nil, "", nil, err
	}
	blobs := account.Endpoint(azaccount.Blob)
	switch {
	case account.Emulator(azaccount.Blob):
		return account, "the emulator at " + blobs, func() {}, nil
	case account.Name() != "":
		return account, "the account " + account.Name(), func() {}, nil
	case blobs != "":
		return account, blobs, func() {}, nil
	}
	server, err := engine.Start(ctx, f, engine.Options{RoundTrip: roundTrip})
	if err != nil {
		return nil, "", nil, err
	}
	account, err = f.Use(server.ConnectionString())
	return account, server.Name + ", " + show.Duration(roundTrip) + " away", func() { _ = server.Stop() }, err
}

// pricePerWrite is the most that a write of a blob costs in the price lists that .github/docs/capacity.md uses. Reads are cheaper.
const pricePerWrite = 0.05 / 10_000

// agreed says what the run may cost, and asks whether to go on, unless --yes is given.
func agreed(ctx context.Context, f *cli.Factory, opts *options, where string) (bool, error) {
	f.Notef("%s on %s: up to %d requests, which may cost up to $%.2f if all were writes of blobs at $0.05 for 10,000",
		show.Plural(len(opts.cells()), "cell"), where, opts.most(), float64(opts.most())*pricePerWrite)
	return f.Agreed(ctx, opts.Yes, "Go on? Only yes sends them: ", "azconc dev run -- azconc bench measures the service in memory")
}

type result struct {
	Outcome string     `json:"outcome"` // done or declined
	Service string     `json:"service"`
	CPUs    int        `json:"cpus,omitempty"`
	Cells   []measured `json:"cells"`
	cli.Cost
}

// Text prints a table for each workload.
func (r result) Text(w io.Writer) {
	if r.Outcome == "declined" {
		fmt.Fprintf(w, "declined %s\n", r.Service)
		return
	}
	last := ""
	for _, m := range r.Cells { // those of a workload stand together
		if m.Workload != last {
			last = m.Workload
			fmt.Fprintf(w, "%s:\n%7s  %-11s %10s %16s %10s %10s %11s\n", last, "clients", "way", "commits/s", "requests/commit", "p50", "p99", "least/mean")
		}
		least := unknown
		if m.Least != nil {
			least = fmt.Sprintf("%.2f", *m.Least)
		}
		fmt.Fprintf(w, "%7d  %-11s %10.2f %16.2f %10s %10s %11s\n", m.Clients, m.Way, m.CommitsPerS, m.RequestsPerCommit, inMS(m.P50MS), inMS(m.P99MS), least)
	}
	fmt.Fprintf(w, "%s on %s, from a machine with %s\n", show.Plural(int(r.Requests), "request"), r.Service, show.Plural(r.CPUs, "processor"))
}

// unknown stands for a figure that is not known.
const unknown = "–"

func inMS(v float64) string {
	if v == 0 {
		return unknown
	}
	return fmt.Sprintf("%.2f ms", v)
}
