package explore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/election"
	"github.com/azconc/azconc/pessimistic/shared"
	"github.com/azconc/azconc/pkg/aztest/explore"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/retry"
)

// withKills adds the death of a client, whose request may still arrive.
var withKills = []explore.Kind{explore.LoseResponse, explore.LoseRequest, explore.Hold, explore.Twice, explore.Wait, explore.Kill}

// patient bounds how long a client of these programs waits for the others: longer than any lease.
var patient = &pessimistic.LockOptions{MaxWait: time.Minute}

// page is what clients write under a lock: who wrote, with which fence.
type page struct{ Writers []entry }

type entry struct {
	Client int
	Fence  fence.Token
}

// write adds a client to the page through its fence.
func write(ctx context.Context, c *explore.Client, h *pessimistic.Hold) error {
	target := blobs.Fenced(h, blobs.NewJSON[page](c.BlockBlob("box", "page")))
	_, err := optimistic.Update(ctx, target, func(_ context.Context, v *page) error {
		v.Writers = append(v.Writers, entry{c.Number, h.Fence()})
		return nil
	}, nil)
	return err
}

// emptyPage makes the page.
func emptyPage(w *explore.World) {
	if _, err := optimistic.Create(context.Background(), blobs.NewJSON[page](w.Service.BlockBlob("box", "page")), page{}, nil); err != nil {
		panic(err)
	}
}

// pageIsRight fails if a client wrote twice, or not although it reports success, or after a client with a later fence.
func pageIsRight(w *explore.World) error {
	v, err := optimistic.Read(context.Background(), blobs.NewJSON[page](w.Service.BlockBlob("box", "page")), nil)
	if err != nil {
		return err
	}
	written, last := map[int]int{}, fence.Token(0)
	for _, e := range v.Value.Writers {
		if e.Fence <= last {
			return fmt.Errorf("a stale holder wrote: %v", v.Value.Writers)
		}
		last = e.Fence
		written[e.Client]++
	}
	for i, err := range w.Errors() {
		if n := written[i]; n > 1 || n == 0 && err == nil {
			return fmt.Errorf("client %d wrote %d times, and reports %v", i, n, err)
		}
	}
	return nil
}

// lockers is a program of clients that each take a lock and write through its fence.
func lockers(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		emptyPage(w)
		d := &ward{}
		var p explore.Program
		for i := range clients {
			p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error {
				k, err := locker(c)
				if err != nil {
					return err
				}
				return k.Do(ctx, "l", patient, func(ctx context.Context, h *pessimistic.Hold) error {
					defer d.enter(ctx, i, false)()
					d.follow(i, h.Fence())
					return write(ctx, c, h)
				})
			})
		}
		p.Check = func() error { return errors.Join(d.overlap, pageIsRight(w), nothingLeaked(w, "l")) }
		return p
	}
}

func TestALockExcludesInEverySchedule(t *testing.T) {
	explored(t, and(long, longer...), lockers, explore.Options{Kinds: withKills})
}

// usurpers is a program of clients that each break the lock of whichever client holds it, at once, and write under it,
// without regard to the end of their own lease, like a process that was paused. Only the fence keeps the first of them
// from writing after the last.
func usurpers(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		emptyPage(w)
		var p explore.Program
		for range clients {
			p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error {
				k, err := locker(c)
				if err != nil {
					return err
				}
				if _, err := k.Break(ctx, "l", &pessimistic.BreakOptions{Now: true}); err != nil && !errors.Is(err, pessimistic.ErrNotFound) {
					return err
				}
				h, err := k.Lock(ctx, "l", patient)
				if err != nil {
					return err
				}
				err = write(ctx, c, h)
				_ = h.Release(ctx) // it may be the next one's
				return err
			})
		}
		p.Check = func() error { return errors.Join(pageIsRight(w), nothingLeaked(w, "l")) }
		return p
	}
}

func TestNoStaleHolderWritesThroughAFenceInAnySchedule(t *testing.T) {
	explored(t, and(long, longer...), usurpers, explore.Options{})
}

// readersAndWriter is a program of one client that writes under a lock and others that read under it.
func readersAndWriter(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		emptyPage(w)
		d := &ward{}
		var p explore.Program
		for i := range clients {
			p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error {
				k, err := locker(c)
				if err != nil {
					return err
				}
				l, err := shared.NewRWLock(k, "l", &shared.RWLockOptions{Readers: 1})
				if err != nil {
					return err
				}
				look := func(ctx context.Context, shared bool) error {
					defer d.enter(ctx, i, shared)()
					_, err := c.BlockBlob("box", "page").GetProperties(ctx, nil)
					return err
				}
				if i == 0 {
					return l.Do(ctx, patient, func(ctx context.Context, _ *pessimistic.Hold) error { return look(ctx, false) })
				}
				return l.RDo(ctx, patient, func(ctx context.Context, _ *shared.Slot) error { return look(ctx, true) })
			})
		}
		p.Check = func() error { return errors.Join(d.overlap, nothingLeaked(w, "l/gate", "l/slot/0")) }
		return p
	}
}

func TestAWriterIsAloneInEverySchedule(t *testing.T) {
	explored(t, and(long, 1, 2, 0, 2, 1, 2, 2, 2, 1, 3, 1, -1), readersAndWriter, explore.Options{Kinds: withKills})
}

// slots is a program of clients that each take one of n slots of a semaphore. Each client has its first choice, and the same
// among those that it finds free.
func slots(n int, first func(client int) int) func(clients int) func(*explore.World) explore.Program {
	return func(clients int) func(*explore.World) explore.Program {
		return func(w *explore.World) explore.Program {
			emptyPage(w)
			d := &ward{most: n}
			var names []string
			for i := range n {
				names = append(names, fmt.Sprint("s/slot/", i))
			}
			var p explore.Program
			for i := range clients {
				p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error {
					k, err := locker(c)
					if err != nil {
						return err
					}
					s, err := shared.NewSemaphore(k, "s", n)
					if err != nil {
						return err
					}
					ctx = retry.WithRandom(ctx, func() float64 { return (float64(first(i)) + 0.5) / float64(n) })
					return s.Do(ctx, patient, func(ctx context.Context, _ *shared.Slot) error {
						defer d.enter(ctx, i, false)()
						_, err := c.BlockBlob("box", "page").GetProperties(ctx, nil)
						return err
					})
				})
			}
			p.Check = func() error { return errors.Join(d.overlap, nothingLeaked(w, names...)) }
			return p
		}
	}
}

func TestASemaphoreAdmitsNoMoreThanItsSlotsInEverySchedule(t *testing.T) {
	same, own := func(int) int { return 0 }, func(client int) int { return client % 2 }
	t.Run("one slot", func(t *testing.T) {
		explored(t, and(long, longer...), slots(1, same), explore.Options{Kinds: withKills})
	})
	t.Run("two slots, the same one first", func(t *testing.T) { explored(t, and(wide, 3, 1, 1), slots(2, same), explore.Options{Kinds: withKills}) })
	t.Run("two slots, another one first", func(t *testing.T) { explored(t, and(wide, 3, 1, 1), slots(2, own), explore.Options{Kinds: withKills}) })
}

// candidates is a program of clients that each run for a lead until they have led once.
func candidates(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		emptyPage(w)
		d := &ward{}
		led := make([]bool, clients)
		var p explore.Program
		for i := range clients {
			p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error {
				k, err := locker(c)
				if err != nil {
					return err
				}
				e, err := election.New(k, "lead", nil)
				if err != nil {
					return err
				}
				return e.Run(ctx, func(ctx context.Context, h *pessimistic.Hold) error {
					defer d.enter(ctx, i, false)()
					d.follow(i, h.Fence())
					led[i] = true
					_, err := c.BlockBlob("box", "page").GetProperties(ctx, nil)
					return err
				})
			})
		}
		p.Check = func() error {
			for i, err := range w.Errors() {
				if err == nil && !led[i] {
					return fmt.Errorf("client %d has run and not led", i)
				}
			}
			return errors.Join(d.overlap, nothingLeaked(w, "lead"))
		}
		return p
	}
}

func TestThereIsOneLeaderInEverySchedule(t *testing.T) {
	explored(t, and(long, longer...), candidates, explore.Options{Kinds: withKills})
}
