package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/engine"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/cmd/azconc/internal/workload"
)

func run(ctx context.Context, f *cli.Factory, opts *options) (err error) {
	page, err := newPage(opts.HTML)
	if err != nil {
		return err
	}
	defer page.discard()
	account, where, stop, err := site(ctx, f, opts)
	if err != nil {
		return err
	}
	defer stop()
	cells := opts.cells()
	if !account.Emulator(azaccount.Blob) {
		if agreed, err := agreed(ctx, f, opts, where, cells); err != nil {
			return err
		} else if !agreed {
			return f.Print(result{Outcome: "declined", Service: where, Cells: []cell{}, Cost: f.Cost()})
		}
	}
	most := 1
	for _, c := range cells {
		most = max(most, c.Clients)
	}
	clients, closeClients := clientOptions(f, most)
	defer closeClients()
	s := workload.New(account, clients)
	r := result{
		Outcome: "done", Service: where, Cells: []cell{}, Name: s.Name(), At: time.Now().UTC().Truncate(time.Second), CPUs: runtime.NumCPU(),
		System: runtime.GOOS + "/" + runtime.GOARCH, ForMS: opts.For.Milliseconds(), MaxCommits: opts.Commits, MaxRequests: opts.MaxRequests,
	}
	f.Notef("measuring %s on %s%s", show.Plural(len(cells), "cell"), where, about(len(cells), opts.For))
	err = r.measure(ctx, f, s, cells, opts.bounds())
	r.remove(ctx, f, s)
	r.Cost = f.Cost()
	if len(r.Cells) > 0 && opts.HTML != "" {
		if problem := page.keep(r); problem == nil {
			r.HTML = opts.HTML
		} else if err == nil {
			err = problem
		}
	}
	if err == nil {
		return f.Print(r)
	}
	if !f.JSON() && len(r.Cells) > 0 { // with JSON, the object of the error has them
		if problem := f.Print(r); problem != nil {
			return problem
		}
	}
	return &endedError{err, r}
}

// about says how long the cells take at most, if that is known: before each, the clients settle for as long, and it is prepared.
func about(cells int, each time.Duration) string {
	if each <= 0 {
		return ""
	}
	return ", for up to " + show.Duration((time.Duration(cells) * (2*each + 200*time.Millisecond)).Round(time.Second))
}

// measure runs the cells one after the other, and keeps those that were measured.
func (r *result) measure(ctx context.Context, f *cli.Factory, s *workload.Site, cells []workload.Cell, b workload.Bounds) error {
	if err := s.Create(ctx, cells); err != nil {
		return err
	}
	progress := f.Progress("measuring")
	defer progress.End()
	for i, c := range cells {
		progress.Say(fmt.Sprintf("%d of %d: %s", i+1, len(cells), c))
		m, err := s.Run(ctx, c, b)
		if err != nil {
			return err
		}
		r.Cells = append(r.Cells, cellOf(m))
	}
	return nil
}

// remove deletes what was created, and says what is left.
func (r *result) remove(ctx context.Context, f *cli.Factory, s *workload.Site) {
	left, err := s.Remove(ctx)
	if len(left) == 0 {
		return
	}
	r.Left = left
	v := fail.Judge(err)
	f.Notef("could not delete everything: %s", fail.Message(err, v, "bench", ""))
	for _, l := range left {
		f.Notef("left: %s; azconc %s delete %s deletes it", l, l.Kind, l.Name)
	}
}

// site returns the account, what to call it, and what stops it at the end.
func site(ctx context.Context, f *cli.Factory, opts *options) (account *azaccount.Account, name string, stop func(), err error) {
	if opts.Engine == given {
		account, err := f.Account()
		if err != nil {
			return nil, "", nil, err
		}
		if account.Endpoint(azaccount.Blob) != "" || account.Endpoint(azaccount.Table) != "" || account.Endpoint(azaccount.Queue) != "" {
			return account, nameOf(account), func() {}, nil
		}
	}
	o := engine.Options{Engine: opts.Engine}
	if opts.Engine != engine.Azurite {
		o.RoundTrip = opts.RoundTrip
	}
	server, err := engine.Start(ctx, f, o)
	if err != nil {
		return nil, "", nil, err
	}
	name = server.Name
	if o.RoundTrip > 0 {
		name += ", " + show.Duration(o.RoundTrip) + " away"
	}
	account, err = azaccount.Resolve(azaccount.Flags{ConnectionString: server.ConnectionString()}, func(string) string { return "" })
	return account, name, func() { _ = server.Stop() }, err
}

// nameOf names an account for the reader.
func nameOf(a *azaccount.Account) string {
	if a.Emulator(azaccount.Blob) {
		return "the emulator at " + a.Endpoint(azaccount.Blob)
	}
	if a.Name() != "" {
		return "the account " + a.Name()
	}
	return a.Endpoint(azaccount.Blob)
}

// clientOptions returns options with a connection for each client: with fewer, clients would wait for one another to connect.
func clientOptions(f *cli.Factory, clients int) (options func() azcore.ClientOptions, stop func()) {
	sender, ok := f.ClientOptions().Transport.(*http.Client)
	if !ok { // a test
		return f.ClientOptions, func() {}
	}
	base, ok := sender.Transport.(*http.Transport)
	if !ok {
		return f.ClientOptions, func() {}
	}
	transport := base.Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 2*clients
	return func() azcore.ClientOptions {
		o := f.ClientOptions()
		o.Transport = &http.Client{Transport: transport, CheckRedirect: sender.CheckRedirect}
		return o
	}, transport.CloseIdleConnections
}

// pricePerWrite is what a write of a blob costs at most in the price lists that .github/docs/capacity.md uses. Reads, and requests to
// tables and queues, are cheaper.
const pricePerWrite = 0.05 / 10_000

// agreed says what the run may cost, and asks whether to go on, unless --yes is given.
func agreed(ctx context.Context, f *cli.Factory, opts *options, where string, cells []workload.Cell) (bool, error) {
	most := workload.Cost(cells, opts.bounds())
	f.Notef("%s on %s: up to %d requests, which may cost up to $%.2f if all were writes of blobs at $0.05 for 10,000",
		show.Plural(len(cells), "cell"), where, most, float64(most)*pricePerWrite)
	if opts.Yes {
		return true, nil
	}
	if !f.InTerminal {
		return false, fail.WithHint(fail.Usagef("stdin is not a terminal, so nobody can be asked"), "--yes answers the question; --engine memory measures the service in memory")
	}
	return f.Confirmed(ctx, "Go on? Only yes sends them: ")
}

// page is the file that --html names. It is written beside it and renamed, so that a run that fails leaves an earlier page.
type page struct {
	name string
	file *os.File
}

// newPage fails before anything is sent if the file cannot be written.
func newPage(name string) (*page, error) {
	if name == "" {
		return &page{}, nil
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil, fail.Usagef("--html %s is a directory", name)
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".azconc-bench-*.html")
	if err != nil {
		return nil, fail.Usagef("--html %s cannot be written: %v", name, err)
	}
	return &page{name, file}, nil
}

func (p *page) keep(r result) error {
	_, err := io.WriteString(p.file, r.page())
	if err == nil {
		err = p.file.Chmod(0o644)
	}
	if problem := p.file.Close(); err == nil {
		err = problem
	}
	if err == nil {
		err = os.Rename(p.file.Name(), p.name)
	}
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	p.file = nil
	return nil
}

func (p *page) discard() {
	if p.file != nil {
		_ = p.file.Close()
		_ = os.Remove(p.file.Name())
	}
}

// endedError is the end of a run that has not measured every cell.
type endedError struct {
	err    error
	result result
}

func (e *endedError) Error() string { return e.err.Error() }
func (e *endedError) Unwrap() error { return e.err }

// Facts are what was measured, and what is left in the account.
func (e *endedError) Facts() map[string]any {
	facts := map[string]any{"service": e.result.Service, "cells": e.result.Cells, "requests": e.result.Requests, "elapsed_ms": e.result.ElapsedMS}
	if len(e.result.Left) > 0 {
		facts["left"] = e.result.Left
	}
	return facts
}
