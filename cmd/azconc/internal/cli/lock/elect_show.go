package lock

import (
	"context"
	"fmt"
	"io"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/election"
)

type electOptions struct {
	Name ref.Blob
}

func electShowVerb() cli.Verb[electOptions] {
	return cli.Verb[electOptions]{
		Use:   "show <container/name>",
		Short: "Show who leads, since when and in which term",
		Long: `Show who leads, since when and in which term, or who led last. The term is the fence of the lock under the same name: the
AZCONC_LOCK_FENCE of the leader's command.

The ETag identifies this term: azconc elect resign --if-match ends this one and no later one. Candidates are not shown: a
waiting candidate stores nothing.`,
		Example:  "  azconc elect show jobs/scheduler",
		Resource: func(opts *electOptions, arg string) (err error) { opts.Name, err = ParseLock(arg); return err },
		Run:      electShowRun,
	}
}

type electShowResult struct {
	Outcome string `json:"outcome"`
	shown
}

func (r electShowResult) Text(w io.Writer) {
	term := ""
	if r.Fence != 0 {
		term = fmt.Sprint(r.Fence)
	}
	if r.Held {
		r.fields(w, "election", "led", "leader", "term", term)
	} else {
		r.fields(w, "election", "led", "last leader", "last term", term)
	}
}

func electShowRun(ctx context.Context, f *cli.Factory, opts *electOptions) error {
	k, err := Locker(f, opts.Name, nil)
	if err != nil {
		return err
	}
	info, err := leader(ctx, k, opts.Name)
	if err != nil {
		return err
	}
	return f.Print(electShowResult{Outcome: "found", shown: showLock(opts.Name.Container, info)})
}

// leader returns who leads, or led last.
func leader(ctx context.Context, k *pessimistic.Locker, name ref.Blob) (pessimistic.LockInfo, error) {
	e, err := election.New(k, name.Blob, nil)
	if err != nil {
		return pessimistic.LockInfo{}, &fail.UsageError{Err: err}
	}
	return e.Leader(ctx)
}
