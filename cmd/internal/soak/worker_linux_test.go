package soak

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"go.uber.org/goleak"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azurite"
	"github.com/azconc/azconc/pkg/retry"
)

// workerVariable holds the config of a process that is a worker.
const workerVariable = "AZCONC_SOAK_WORKER"

// config is what a worker is given.
type config struct {
	Worker  int
	Process string // w2.3 is the third process of worker 2
	Seed    uint64
	Account azurite.Account
	Dir     string // for the journal
	Plant   plant
}

// worker is a process that does all chores, until its standard input ends. A line there says that the weather is over:
// what is under way is finished, and nothing new is begun.
type worker struct {
	config
	site    *site
	journal *journal
	weather context.Context // ends when nothing new is to be begun any more
}

// work is the main function of a worker, and returns its exit status.
func work(text string) int {
	w := &worker{}
	must(json.Unmarshal([]byte(text), &w.config))
	journal, err := createJournal(w.Dir, w.Process)
	must(err)
	w.journal = journal
	w.site = newSite(w.Account)
	if w.Plant.has(noIfMatch) {
		w.site.calls = append(w.site.calls, unconditional{})
	}
	ctx, end := context.WithCancel(context.Background())
	weather, calm := context.WithCancel(ctx)
	w.weather = weather
	var all sync.WaitGroup
	all.Go(func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			calm()
		}
		end()
	})
	for _, c := range chores {
		all.Go(func() { c.work(ctx, w) })
	}
	all.Wait()
	w.site.close()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "goroutines are left:", err)
		return 3
	}
	return 0
}

// lane is one goroutine of a chore. Its choices follow from the seed. Its name is the same in each process of the worker,
// and no two processes of a worker live at a time: what a lane alone changes has one writer.
type lane struct {
	*worker
	name  string
	index int        // of the chore's lanes
	mu    sync.Mutex // guards rng: handlers share a lane
	rng   *rand.Rand
}

func (w *worker) lane(chore string, i int) *lane {
	name := fmt.Sprintf("w%d/%s/%d", w.Worker, chore, i)
	return &lane{worker: w, name: name, index: i, rng: rand.New(rand.NewPCG(w.Seed, hash(w.Process+name)))}
}

// repeat runs n lanes, each of which does something again and again until the weather is over, and rests for d on average in
// between.
func (w *worker) repeat(ctx context.Context, chore string, n int, d time.Duration, do func(l *lane)) {
	var all sync.WaitGroup
	for i := range n {
		l := w.lane(chore, i)
		all.Go(func() {
			for w.weather.Err() == nil {
				do(l)
				l.rest(ctx, d)
			}
		})
	}
	all.Wait()
}

func (l *lane) roll(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rng.IntN(n)
}

// rest pauses for up to twice d.
func (l *lane) rest(ctx context.Context, d time.Duration) {
	_ = retry.Sleep(ctx, time.Duration(l.roll(int(2*d))))
}

// done ends a note with what an operation returned.
func (l *lane) done(ctx context.Context, n note, err error) string {
	if unknown, ok := errors.AsType[*optimistic.UnknownError](err); ok && ctx.Err() == nil {
		l.rest(ctx, 500*time.Millisecond)
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if resolved := unknown.Resolve(ctx); resolved == nil || errors.Is(resolved, optimistic.ErrConflict) {
			err = resolved
		}
	}
	out := outcome(err)
	if err != nil && out != refused {
		n.Text = cmp.Or(n.Text, err.Error())
	}
	l.journal.end(n, out)
	return out
}

// What an operation can end in. Failed means not applied.
const (
	ok      = "ok"
	refused = "refused"
	unknown = "unknown"
	failed  = "failed"
)

func outcome(err error) string {
	switch {
	case err == nil:
		return ok
	case errors.Is(err, optimistic.ErrOutcomeUnknown):
		return unknown
	case errors.Is(err, optimistic.ErrConflict):
		return refused
	default:
		return failed
	}
}
