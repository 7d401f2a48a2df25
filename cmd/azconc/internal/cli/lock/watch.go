package lock

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/live"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/lease"
)

// Sections are those of the rows of LocksIn. An election is a lock whose holder leads, and whose fence is the term: nothing that is
// stored distinguishes them.
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
func LocksIn(f *cli.Factory, in ref.Blob) live.Source {
	return live.Source{Name: "locks in " + in.Container, Fetch: func(ctx context.Context) ([]live.Row, error) {
		k, err := Locker(f, in, nil)
		if err != nil {
			return nil, err
		}
		var rows []live.Row
		semaphores := map[string]*semaphoreLive{}
		var names []string
		for info, err := range k.List(ctx, nil) {
			if err != nil {
				return nil, err
			}
			name, number, ok := slotOf(info.Name)
			if !ok {
				rows = append(rows, lockRow(in, info))
				continue
			}
			s := semaphores[name]
			if s == nil {
				s = &semaphoreLive{Semaphore: in.Container + "/" + name, Holders: []slotShown{}}
				semaphores[name], names = s, append(names, name)
			}
			s.add(in, number, info)
		}
		for _, name := range names {
			rows = append(rows, semaphores[name].row())
		}
		return rows, nil
	}}
}

// semaphoreLive is a semaphore with the holders of its slots.
type semaphoreLive struct {
	Semaphore string      `json:"resource"`
	Held      int         `json:"held"`
	Slots     int         `json:"slots"` // that were used
	Holders   []slotShown `json:"holders"`
	slots     []live.Row
}

type slotShown struct {
	Slot int `json:"slot"`
	shown
}

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

func (s *semaphoreLive) add(in ref.Blob, number int, info pessimistic.LockInfo) {
	if s.Slots++; !info.Held {
		return
	}
	s.Held++
	s.Holders = append(s.Holders, slotShown{number, showLock(in.Container, info)})
	slot := lockRow(in, info)
	slot.Cells[2] = fmt.Sprint("  slot ", number)
	s.slots = append(s.slots, slot)
}

func (s *semaphoreLive) row() live.Row {
	return live.Row{
		Section: "semaphores", ID: s.Semaphore, Idle: s.Held == 0, Value: s, Parts: s.slots,
		Cells: []string{fmt.Sprintf("%d of %d held", s.Held, s.Slots), "", s.Semaphore, "", "", ""},
	}
}

func lockRow(in ref.Blob, info pessimistic.LockInfo) live.Row {
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
	if s.Held { // it breaks the acquisition that is shown, and no later one
		command := "azconc lock break " + show.Quote(s.Lock) + " --if-match " + show.Quote(strings.Trim(string(info.ETag), `"`))
		if info.Duration == pessimistic.Infinite {
			command += " --period " + show.Duration(endlessGrace)
		}
		row.Commands = []string{command}
	}
	return row
}
