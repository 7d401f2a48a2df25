package soak

import (
	"context"
	"strings"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/retry"
)

const (
	lockLanes   = 3
	leaseTime   = 15 * time.Second // the shortest that there is
	lockPatient = 8 * time.Second
)

var lockNames = []string{"gate-a", "gate-b", "broken-c", "broken-d"}

// fenced is what is written under a lock, in a blob and in an entity.
type fenced struct {
	Fence int64 `json:"fence"`
	N     int64 `json:"n"`
}

func fencedBlob(s *site, name string) blobs.Blob[fenced] {
	return blobs.NewJSON[fenced](s.container("fenced").NewBlockBlobClient(name))
}

// workLocks takes named locks whose holders write with their fence: to a blob and to a partition. Some locks are broken by
// others while they are held, so that only the fence keeps their holders apart.
func workLocks(ctx context.Context, w *worker) {
	locker, err := pessimistic.NewLocker(w.site.container("locks"), &pessimistic.LockerOptions{Owner: w.Process, Duration: leaseTime,
		Poll: retry.Backoff{Base: 100 * time.Millisecond, Cap: time.Second}})
	must(err)
	w.repeat(ctx, "lock", lockLanes, 200*time.Millisecond, func(l *lane) {
		name := lockNames[l.roll(len(lockNames))]
		var h *pessimistic.Hold
		l.turn(ctx, name, 0, func() (_ *pessimistic.Hold, err error) {
			h, err = locker.Lock(ctx, name, &pessimistic.LockOptions{MaxWait: lockPatient})
			return h, err
		}, func(ctx context.Context) {
			if kind := l.roll(8); kind < len(fencedKinds) {
				l.write(ctx, fencedKinds[kind], name, h)
			}
		})
		if l.Plant.has(noFence) && h != nil { // it works on when the lock is another's
			for range 10 {
				l.write(ctx, "blob", name, h)
				l.rest(ctx, 200*time.Millisecond)
			}
		}
		if l.Plant.has(noRelease) {
			leaseForEver(ctx, w.site.container("fenced").NewBlockBlobClient("forgotten"))
		}
		if strings.HasPrefix(name, "broken") && l.roll(4) == 0 {
			_, _ = locker.Break(ctx, name, &pessimistic.BreakOptions{Now: true})
		}
	})
}

// fencedKinds are what is written under a lock.
var fencedKinds = []string{"blob", "entity"}

func (l *lane) write(ctx context.Context, kind, name string, h *pessimistic.Hold) {
	n := l.journal.begin(note{Kind: "fenced", Lane: l.name, Of: kind + " " + name, V: int64(h.Fence())})
	change := func(_ context.Context, f *fenced) error {
		n.N = f.Fence
		f.Fence, f.N = int64(h.Fence()), f.N+1
		return nil
	}
	var err error
	switch {
	case kind == "entity":
		_, err = tables.Transact(ctx, l.site.table("fenced"), name, func(ctx context.Context, tx *tables.Tx) error {
			return changeRow(ctx, tx, "r", change)
		}, &tables.TransactOptions{Holder: h, SendOptions: proven})
	case l.Plant.has(noFence):
		_, err = optimistic.Update(ctx, fencedBlob(l.site, name), change, &optimistic.UpdateOptions{Create: true, SendOptions: proven})
	default:
		_, err = optimistic.Update(ctx, blobs.Fenced(h, fencedBlob(l.site, name)), change, &optimistic.UpdateOptions{Create: true, SendOptions: proven})
	}
	l.done(ctx, n, err)
}

func judgeLocks(ctx context.Context, s *soak) error {
	stale := s.say("no write by a stale holder")
	counted := s.say("writes under a lock applied once")
	for of, notes := range s.records.of("fenced").by(func(n note) string { return n.Of }) {
		var least, most int64
		for _, n := range notes {
			stale.judged++
			switch {
			case n.Out == ok:
				least, most = least+1, most+1
			case n.Out == unknown, n.End == 0:
				most++
			}
			if n.Out == ok && n.N > n.V {
				stale.wrong("%s wrote to %s with fence %d over %d", n.Lane, of, n.V, n.N)
			}
		}
		kind, name, _ := strings.Cut(of, " ")
		var target optimistic.Target[fenced] = fencedBlob(s.site, name)
		if kind == "entity" {
			target = tables.NewEntity[fenced](s.site.table("fenced"), name, "r")
		}
		found, err := stored(ctx, target)
		if err != nil {
			return err
		}
		counted.judged++
		counted.between("all lanes", of, least, most, found.N)
	}
	return nil
}
