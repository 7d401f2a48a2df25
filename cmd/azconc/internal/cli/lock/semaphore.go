package lock

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
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

func newSemaphoreShowCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show <container/name>",
		Short: "Show who holds the slots of a semaphore",
		Long: `Show the slots of a semaphore: which are held, by whom and since when, and who held the others last. With -o json also
the fence of each slot, which orders the holders of this slot alone.

A slot exists once it has been used: how many there may be is known only to the programs that use the semaphore, from their
--slots. The readers of a readers-writer lock hold such slots, too. If there are none, the exit code is 3.`,
		Example: "  azconc semaphore show jobs/encoders",
	}
	return cli.On(f, cmd, ParseLock, opener(f), func(ctx context.Context, on ref.Blob, k *pessimistic.Locker) (cli.Result, error) {
		r := semaphoreShowResult{Outcome: "found", Semaphore: on.String()}
		for info, err := range k.List(ctx, &pessimistic.ListOptions{Prefix: on.Blob + slotsIn}) {
			if err != nil {
				return nil, err
			}
			name, number, ok := slotOf(info.Name)
			if !ok || name != on.Blob {
				continue
			}
			if info.Held {
				r.Held++
			}
			r.Slots = append(r.Slots, slotShown{number, showLock(on.Container, info)})
		}
		if len(r.Slots) == 0 {
			return nil, fail.WithHint(&noSlots{on.String()}, "azconc semaphore list "+show.Quote(on.Container)+" prints the semaphores that were used")
		}
		slices.SortFunc(r.Slots, func(a, b slotShown) int { return a.Slot - b.Slot })
		r.Requests = f.Requests.Load()
		return r, nil
	})
}

// noSlots reports that no slot of a semaphore was ever used.
type noSlots struct{ name string }

func (e *noSlots) Error() string {
	return e.name + " has no slots: it was never used, or its locks were deleted"
}
func (*noSlots) Verdict() fail.Verdict {
	return fail.Verdict{Code: fail.ExitNotFound, Outcome: "not_found"}
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

func newSemaphoreListCmd(f *cli.Factory) *cobra.Command {
	var prefix string
	cmd := &cobra.Command{
		Use:   "list <container>",
		Short: "List the semaphores of a container",
		Long: `List the semaphores of a container, with the number of their slots that are held and that were used. The readers of a
readers-writer lock hold such slots, too, so it is in the list.`,
		Example: "  azconc semaphore list jobs\n  azconc semaphore list jobs --prefix enc -o json",
	}
	addPrefix(cmd, &prefix)
	return cli.On(f, cmd, ref.ParseContainer, opener(f), func(ctx context.Context, in ref.Blob, k *pessimistic.Locker) (cli.Result, error) {
		all := map[string]*semaphoreItem{} // locks of other names may come between the slots of one
		for info, err := range k.List(ctx, &pessimistic.ListOptions{Prefix: prefix}) {
			if err != nil {
				return nil, err
			}
			name, _, ok := slotOf(info.Name)
			if !ok || !strings.HasPrefix(name, prefix) {
				continue
			}
			if all[name] == nil {
				all[name] = &semaphoreItem{Semaphore: in.Container + "/" + name}
			}
			if all[name].Slots++; info.Held {
				all[name].Held++
			}
		}
		r := semaphoreListResult{Outcome: "listed", Container: in.Container, Semaphores: []semaphoreItem{}, Requests: f.Requests.Load()}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			r.Semaphores = append(r.Semaphores, *all[name])
		}
		return r, nil
	})
}
