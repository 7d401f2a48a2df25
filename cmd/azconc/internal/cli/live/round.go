package live

import (
	"context"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"golang.org/x/sync/errgroup"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
)

// atOnce is how many parts are fetched at a time.
const atOnce = 8

// part is what a source has returned in a round.
type part struct {
	Name string
	Rows []Row
	Err  error
}

// round is the result of one refresh.
type round struct {
	Began time.Time
	Parts []part
	Note  string
	Err   error // why the parts are not known
	Cost  cost
}

// cost is the requests of a view, as far as it has sent them.
type cost struct {
	Total  int64 // since the command began
	Minute int64 // in the last minute
	Round  int64 // of the last round
}

// rounds fetches a view again and again. It is not safe for concurrent use.
type rounds struct {
	f       *cli.Factory
	view    View
	patient bool // no round follows that would be the retry
	window  window
}

func newRounds(f *cli.Factory, v View) *rounds { return &rounds{f: f, view: v} }

// next fetches every part once.
func (r *rounds) next(ctx context.Context) round {
	limit := lastTimeout
	if !r.patient {
		ctx, limit = policy.WithRetryOptions(ctx, once), roundTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	got := round{Began: time.Now()}
	before := r.f.Requests.Load()
	var sources []Source
	sources, got.Note, got.Err = r.view.Sources(ctx)
	got.Parts = make([]part, len(sources))
	var all errgroup.Group
	all.SetLimit(atOnce)
	for i, s := range sources {
		all.Go(func() error {
			rows, err := s.Fetch(ctx)
			got.Parts[i] = part{Name: s.Name, Rows: rows, Err: err}
			return nil
		})
	}
	_ = all.Wait() // a part's error is the part's
	got.Cost = r.spent(before)
	return got
}

// once leaves the retry to the next round.
var once = policy.RetryOptions{ShouldRetry: func(*http.Response, error) bool { return false }}

func (r *rounds) spent(before int64) cost {
	now, total := time.Now(), r.f.Requests.Load()
	return cost{Total: total, Minute: r.window.count(now, total), Round: total - before}
}

// window counts what was added in the last minute.
type window struct{ seen []sample }

type sample struct {
	at    time.Time
	total int64
}

// count adds the total of now, and returns what was added since a minute ago. What was added between two samples counts from the
// later one.
func (w *window) count(now time.Time, total int64) int64 {
	w.seen = append(w.seen, sample{now, total})
	var before int64
	keep := 0
	for i, s := range w.seen {
		if now.Sub(s.at) >= time.Minute {
			before, keep = s.total, i
		}
	}
	w.seen = w.seen[keep:]
	return total - before
}
