// Command soak keeps several processes at work for minutes, over a network that loses, delays, cuts and repeats requests,
// on an Azurite with its data on disk, while processes are killed, stopped past their leases and continued, and the
// service is restarted. Then it judges whether azconc kept its promises.
//
//	scripts/soak [--seed N] [--minutes M]
//
// The processes use all of the libraries: Update on blobs and entities, Document, operation ids, Transact, AppendRecord,
// Create, Locker with fenced writes, RWLock, Semaphore, Election, Producer and Consumer with markers, sessions, inbox and
// large bodies, poison and Redrive, Once. Each writes a journal of what it began and what came of it. The judge reads
// the journals and the service.
//
// The seed decides what happens to whom and when, the order of each lane's operations, and which request of a line meets
// which fault. When requests overtake each other, and so which operation a fault hits, is the machine's choice: a seed
// repeats the weather, not every history.
//
// The exit status is 1 if a promise was broken, and 2 if the soak could not be run. Azure Files are not part of it,
// because Azurite has none.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if text, ok := os.LookupEnv(workerVariable); ok {
		os.Exit(work(text))
	}
	os.Exit(command(os.Args[1:]))
}

func command(args []string) int {
	o := options{Drain: 4 * time.Minute, Patience: time.Minute}
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.Uint64Var(&o.Seed, "seed", 1, "decides the workload, the faults and the events")
	flags.Float64Var(&o.Minutes, "minutes", 10, "how long the weather lasts")
	flags.IntVar(&o.Workers, "workers", 4, "how many processes are at work at a time")
	flags.Float64Var(&o.Rough, "rough", 1, "how many times as many faults of the network as the usual 8 % of requests, up to 10")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if err := o.check(flags.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	r, err := run(ctx, o, os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "soak:", err)
		return 2
	case r.Problems > 0:
		return 1
	default:
		return 0
	}
}

func (o options) check(rest []string) error {
	switch {
	case !supported:
		return fmt.Errorf("it stops and continues processes by signals, as Linux has them")
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case o.Minutes <= 0:
		return fmt.Errorf("--minutes: %v is not positive", o.Minutes)
	case o.Rough <= 0 || o.Rough > 10:
		return fmt.Errorf("--rough: %v is not above 0 and at most 10", o.Rough)
	case o.Workers < 2:
		return fmt.Errorf("--workers: %d is less than 2", o.Workers)
	}
	return nil
}
