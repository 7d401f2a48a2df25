package lock

import (
	"context"
	"fmt"
	"strings"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/live"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/lease"
)

// Sections are those of the rows of LocksIn. An election is a lock whose holder leads, and whose fence is the term: nothing that is
// stored tells them apart.
func Sections() []live.Section {
	return []live.Section{
		{Key: "locks", Title: "Locks and elections", Columns: holdings("lock")},
		{Key: "semaphores", Title: "Semaphores", Columns: holdings("semaphore")},
	}
}

func holdings(what string) []live.Column {
	return []live.Column{
		{Title: "state"}, {Title: "since", Drop: 3}, {Title: "age", Age: true, Right: true}, {Title: what, Long: true}, {Title: "fence", Right: true, Drop: 2},
		{Title: "holder", Long: true, Drop: 1}, {Title: "waiting", Right: true, Drop: 4},
	}
}

// LocksIn fetches the locks and semaphores of a container. Requests: 1 per 5,000 blobs.
func LocksIn(f *cli.Factory, in ref.Blob, prefix string, held bool) live.Source {
	return live.Source{Name: "locks in " + in.Container, Fetch: func(ctx context.Context) ([]live.Row, error) {
		k, err := Locker(f, in, nil)
		if err != nil {
			return nil, err
		}
		var rows []live.Row
		semaphores := map[string]*semaphoreLive{}
		var names []string
		for info, err := range k.List(ctx, &pessimistic.ListOptions{Prefix: prefix}) {
			if err != nil {
				return nil, err
			}
			if name, number, ok := slotOf(info.Name); ok {
				s := semaphores[name]
				if s == nil {
					s = &semaphoreLive{semaphoreItem: semaphoreItem{Semaphore: in.Container + "/" + name}, Holders: []slotShown{}}
					semaphores[name], names = s, append(names, name)
				}
				s.add(f, in, number, info)
				continue
			}
			if info.Held || !held {
				rows = append(rows, lockRow(f, in, info))
			}
		}
		for _, name := range names {
			if s := semaphores[name]; s.Held > 0 || !held {
				rows = append(append(rows, s.row()), s.slots...)
			}
		}
		return rows, nil
	}}
}

// semaphoreLive is a semaphore with those who hold its slots.
type semaphoreLive struct {
	semaphoreItem
	Holders []slotShown `json:"holders"`
	slots   []live.Row
}

func (s *semaphoreLive) add(f *cli.Factory, in ref.Blob, number int, info pessimistic.LockInfo) {
	if s.Slots++; !info.Held {
		return
	}
	s.Held++
	s.Holders = append(s.Holders, slotShown{number, showLock(in.Container, info)})
	slot := lockRow(f, in, info)
	slot.Section, slot.Inside, slot.Value = "semaphores", true, nil
	slot.Cells[2] = fmt.Sprint("  slot ", number)
	s.slots = append(s.slots, slot)
}

func (s *semaphoreLive) row() live.Row {
	return live.Row{
		Section: "semaphores", ID: s.Semaphore, Idle: s.Held == 0, Value: s,
		Cells: []string{fmt.Sprintf("%d of %d held", s.Held, s.Slots), "", s.Semaphore, "", "", ""},
	}
}

func lockRow(f *cli.Factory, in ref.Blob, info pessimistic.LockInfo) live.Row {
	s := showLock(in.Container, info)
	state, fence, holder, waiting := s.word(), "", s.Owner, ""
	switch {
	case info.State == lease.Breaking:
		state = "breaking"
	case !s.Held && holder != "":
		holder = "last " + holder
	}
	if s.Fence != 0 {
		fence = fmt.Sprint(s.Fence)
	}
	if s.Waiting > 0 {
		waiting = fmt.Sprint(s.Waiting)
	}
	row := live.Row{Section: "locks", ID: s.Lock, Idle: !s.Held, Value: s, Since: info.Since, Cells: []string{state, s.Since, s.Lock, fence, holder, waiting}}
	if s.Held {
		row.Break = breaking(f, in, info, s)
	}
	return row
}

// breaking breaks the acquisition that is shown, and no later one. The holder has the rest of its lease, or as long as the service
// accepts, to stop.
func breaking(f *cli.Factory, in ref.Blob, info pessimistic.LockInfo, s shown) *live.Action {
	o := &breakOptions{Lock: in, IfMatch: info.ETag}
	o.Lock.Blob = info.Name
	command := "azconc lock break " + show.Quote(s.Lock) + " --if-match " + show.Quote(strings.Trim(string(info.ETag), `"`))
	stops := "until the rest of its lease has run out"
	if info.Duration == pessimistic.Infinite {
		o.Period = endlessGrace
		command += " --period " + show.Duration(endlessGrace)
		stops = "for " + show.Duration(endlessGrace) + " at most"
	}
	return &live.Action{
		Question: fmt.Sprintf("Break %s, held by %s with fence %d? The holder notices at its next renewal, and nobody else gets the lock %s.",
			s.Lock, show.OrAnother(s.Owner), s.Fence, stops),
		Command: command,
		Do: func(ctx context.Context, _ func(string)) (string, error) {
			r, err := breakOne(ctx, f, o)
			if err != nil {
				return "", err
			}
			var text strings.Builder
			r.Text(&text)
			return text.String(), nil
		},
	}
}
