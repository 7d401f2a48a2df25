// Command soak keeps several processes at work for minutes, over a network that loses, delays, cuts and repeats requests,
// on an Azurite with its data on disk, while processes are killed, stopped past their leases and continued, and the
// service is restarted. Then it judges whether azconc kept its promises.
//
//	scripts/soak [--seed N] [--minutes M]
//
// The processes use all of the libraries: Update on blobs and entities, Document, operation ids, Transact, Locker
// with fenced writes, RWLock, Semaphore, Producer and Consumer with markers and inbox, poison and Redrive, Once.
// Each writes a journal of what it began and what came of it. The judge reads the journals and the service.
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
	o := options{Drain: 4 * time.Minute, Patience: time.Minute}
	flag.Uint64Var(&o.Seed, "seed", 1, "decides the workload, the faults and the events")
	minutes := flag.Float64("minutes", 10, "how long the weather lasts")
	flag.Parse()
	if flag.NArg() > 0 || *minutes <= 0 || !supported {
		fmt.Fprintln(os.Stderr,
			"soak: --minutes is not positive, there are arguments, or this is not Linux, whose signals stop and continue processes")
		os.Exit(2)
	}
	o.Length = time.Duration(*minutes * float64(time.Minute))
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	s, err := run(ctx, o, os.Stdout)
	cancel()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	case s.problems() > 0:
		os.Exit(1)
	}
}
