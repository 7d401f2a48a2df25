package lock

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
)

// slotsIn separates the name of a semaphore from the numbers of its slots, which are locks: see shared.Semaphore.
const slotsIn = "/slot/"

// slotOf splits the name of a slot's lock.
func slotOf(name string) (semaphore string, number int, ok bool) {
	i := strings.LastIndex(name, slotsIn)
	if i < 1 {
		return "", 0, false
	}
	text := name[i+len(slotsIn):]
	number, err := strconv.Atoi(text)
	return name[:i], number, err == nil && number >= 0 && strconv.Itoa(number) == text
}

// slotShown is a slot as it is printed.
type slotShown struct {
	Slot int `json:"slot"`
	shown
}

type semaphoreShowResult struct {
	Outcome   string      `json:"outcome"`
	Semaphore string      `json:"resource"`
	Held      int         `json:"held"`
	Slots     []slotShown `json:"slots"`
	Requests  int64       `json:"requests"`
}

func (r semaphoreShowResult) Text(w io.Writer) {
	show.Fields(w, "semaphore", r.Semaphore, "held", fmt.Sprintf("%d of %s that were used", r.Held, show.Plural(len(r.Slots), "slot")))
	for _, s := range r.Slots {
		fmt.Fprintf(w, "%4d  %s  %-20s  %s\n", s.Slot, s.word(), s.Since, show.Line(s.Owner))
	}
}

type semaphoreOptions struct {
	Semaphore ref.Blob
}

func semaphoreShowVerb() cli.Verb[semaphoreOptions] {
	return cli.Verb[semaphoreOptions]{
		Use:   "show <container/name>",
		Short: "Show who holds the slots of a semaphore",
		Long: `Show the slots of a semaphore: which are held, by whom and since when, and who held the others last. With -o json also
the fence of each slot, which orders the holders of this slot alone.

A slot exists once it has been used: how many there may be is known only to the programs that use the semaphore, from their
--slots. The readers of a readers-writer lock hold such slots, too. If there are none, the exit code is 3.`,
		Example:  "  azconc semaphore show jobs/encoders",
		Resource: func(opts *semaphoreOptions, arg string) (err error) { opts.Semaphore, err = ParseLock(arg); return err },
		Run:      semaphoreShowRun,
	}
}

func semaphoreShowRun(ctx context.Context, f *cli.Factory, opts *semaphoreOptions) error {
	k, err := Locker(f, opts.Semaphore, nil)
	if err != nil {
		return err
	}
	r := semaphoreShowResult{Outcome: "found", Semaphore: opts.Semaphore.String()}
	for info, err := range k.List(ctx, &pessimistic.ListOptions{Prefix: opts.Semaphore.Blob + slotsIn}) {
		if err != nil {
			return err
		}
		name, number, ok := slotOf(info.Name)
		if !ok || name != opts.Semaphore.Blob {
			continue
		}
		if info.Held {
			r.Held++
		}
		r.Slots = append(r.Slots, slotShown{number, showLock(opts.Semaphore.Container, info)})
	}
	if len(r.Slots) == 0 {
		return fail.WithHint(&noSlots{opts.Semaphore.String()}, "azconc semaphore list "+show.Quote(opts.Semaphore.Container)+" prints the semaphores that were used")
	}
	slices.SortFunc(r.Slots, func(a, b slotShown) int { return a.Slot - b.Slot })
	r.Requests = f.Requests.Load()
	return f.Print(r)
}

// noSlots reports that no slot of a semaphore was ever used.
type noSlots struct{ name string }

func (e *noSlots) Error() string {
	return e.name + " has no slots: it was never used, or its locks were deleted"
}
func (*noSlots) Verdict() fail.Verdict {
	return fail.Verdict{Code: fail.ExitNotFound, Outcome: "not_found"}
}

type semaphoreListOptions struct {
	Container ref.Blob
	Prefix    string
}

func semaphoreListVerb() cli.Verb[semaphoreListOptions] {
	return cli.Verb[semaphoreListOptions]{
		Use:   "list <container>",
		Short: "List the semaphores of a container",
		Long: `List the semaphores of a container, with the number of their slots that are held and that were used. The readers of a
readers-writer lock hold such slots, too, so it is in the list.`,
		Example: "  azconc semaphore list jobs\n  azconc semaphore list jobs --prefix enc -o json",
		Flags: func(opts *semaphoreListOptions, set *pflag.FlagSet) {
			set.StringVar(&opts.Prefix, "prefix", "", "only names that begin with this `text`")
			flags.AllowEmpty(set, "prefix")
		},
		Resource: func(opts *semaphoreListOptions, arg string) (err error) {
			opts.Container, err = ref.ParseContainer(arg)
			return err
		},
		Run: semaphoreListRun,
	}
}

type semaphoreListResult struct {
	Outcome    string          `json:"outcome"`
	Container  string          `json:"resource"`
	Semaphores []semaphoreItem `json:"semaphores"`
	Requests   int64           `json:"requests"`
}

type semaphoreItem struct {
	Semaphore string `json:"resource"`
	Held      int    `json:"held"`
	Slots     int    `json:"slots"` // that were used
}

func (r semaphoreListResult) Text(w io.Writer) {
	for _, s := range r.Semaphores {
		fmt.Fprintf(w, "%4d of %4d held  %s\n", s.Held, s.Slots, s.Semaphore)
	}
}

func semaphoreListRun(ctx context.Context, f *cli.Factory, opts *semaphoreListOptions) error {
	k, err := Locker(f, opts.Container, nil)
	if err != nil {
		return err
	}
	r := semaphoreListResult{Outcome: "listed", Container: opts.Container.Container, Semaphores: []semaphoreItem{}}
	at := map[string]int{} // the index of each semaphore: locks of other names may come between its slots
	for info, err := range k.List(ctx, &pessimistic.ListOptions{Prefix: opts.Prefix}) {
		if err != nil {
			return err
		}
		name, _, ok := slotOf(info.Name)
		if !ok || !strings.HasPrefix(name, opts.Prefix) {
			continue
		}
		i, seen := at[name]
		if !seen {
			i = len(r.Semaphores)
			at[name] = i
			r.Semaphores = append(r.Semaphores, semaphoreItem{Semaphore: opts.Container.Container + "/" + name})
		}
		r.Semaphores[i].Slots++
		if info.Held {
			r.Semaphores[i].Held++
		}
	}
	slices.SortFunc(r.Semaphores, func(a, b semaphoreItem) int { return strings.Compare(a.Semaphore, b.Semaphore) })
	r.Requests = f.Requests.Load()
	return f.Print(r)
}
