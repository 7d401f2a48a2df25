//go:build !race

package pessimistic_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/election"
	"github.com/azconc/azconc/pessimistic/group"
	"github.com/azconc/azconc/pessimistic/shared"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/retry"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// holder is what the work of each way is given.
type holder interface {
	Context() context.Context
	ID() string
	Err() error
	Remaining() (stop, end time.Duration, changed <-chan struct{})
}

type workload func(ctx context.Context, h holder) error

// way is a way to hold something.
type way struct {
	name  string
	do    func(ctx context.Context, p *process, c *called, opts *pessimistic.LockOptions, work workload) error
	kinds [3]string // of the processes: what each of them wants
	most  int       // how many may hold it at once
	lacks string    // names of settings and events that do not exist for it
}

func onHold(work workload) func(context.Context, *pessimistic.Hold) error {
	return func(ctx context.Context, h *pessimistic.Hold) error { return work(ctx, h) }
}

func onSlot(work workload) func(context.Context, *shared.Slot) error {
	return func(ctx context.Context, s *shared.Slot) error { return work(ctx, s.Hold()) }
}

var errDone = errors.New("done")

var alone = [3]string{"alone", "alone", "alone"}

var waysOf = []*way{
	{name: "Lock", kinds: alone, most: 1, do: func(ctx context.Context, p *process, _ *called, opts *pessimistic.LockOptions, work workload) error {
		return p.locker.Do(ctx, "job", opts, onHold(work))
	}},
	{name: "Remove", kinds: alone, most: 1, do: func(ctx context.Context, p *process, _ *called, opts *pessimistic.LockOptions, work workload) error {
		h, err := p.locker.Lock(ctx, "job", opts)
		if err != nil {
			return err
		}
		return errors.Join(work(h.Context(), h), h.Remove(ctx))
	}},
	{name: "slot", kinds: [3]string{"slot", "slot", "slot"}, most: 2, lacks: "content", do: func(ctx context.Context, p *process, _ *called, opts *pessimistic.LockOptions, work workload) error {
		s, err := shared.NewSemaphore(p.locker, "job", 2)
		p.check(err)
		return s.Do(ctx, opts, onSlot(work))
	}},
	{name: "write", kinds: [3]string{"alone", "read", "alone"}, most: 1, lacks: "content", do: shareOrWrite},
	{name: "read", kinds: [3]string{"read", "alone", "read"}, most: 4, lacks: "content,fenced blob,fenced row", do: shareOrWrite},
	{name: "lead", kinds: alone, most: 1, do: func(ctx context.Context, p *process, _ *called, opts *pessimistic.LockOptions, work workload) error {
		e, err := election.New(p.locker, "job", &election.Options{Candidacy: opts})
		p.check(err)
		return e.Run(ctx, onHold(work))
	}},
	{name: "part", kinds: alone, most: 1, lacks: "content,NoWait,short,patient,crew,no hand-overs,at least,infinite,gives up", do: func(ctx context.Context, p *process, _ *called, _ *pessimistic.LockOptions, work workload) error {
		g, err := group.New(p.locker, "job", 1, nil)
		p.check(err)
		err = g.Run(ctx, func(ctx context.Context, _ int, h *pessimistic.Hold) error {
			if err := work(ctx, h); err != nil || ctx.Err() != nil {
				return err
			}
			return retry.Stop(errDone)
		})
		if errors.Is(err, errDone) {
			err = nil
		}
		return err
	}},
	{name: "lease", kinds: alone, most: 1, lacks: "content,crew,no hand-overs,deleted,at least,delay,quick first,fenced blob,fenced row,dead waiters,tickets deleted,wiped,collected,clock jumps,reclaim,sick",
		do: func(ctx context.Context, p *process, _ *called, opts *pessimistic.LockOptions, work workload) error {
			o := p.locker.Options()
			return pessimistic.Do(ctx, pessimistic.NewBlob(p.ContainerOver(p).NewBlockBlobClient("b")), &pessimistic.AcquireOptions{
				Duration: o.Duration, MaxWait: opts.MaxWait, NoWait: opts.NoWait}, func(ctx context.Context, l *pessimistic.Lease) error { return work(ctx, l) })
		}},
}

func shareOrWrite(ctx context.Context, p *process, c *called, opts *pessimistic.LockOptions, work workload) error {
	l, err := shared.NewRWLock(p.locker, "job", &shared.RWLockOptions{Readers: 4})
	p.check(err)
	if c.kind == "read" {
		return l.RDo(ctx, opts, onSlot(work))
	}
	return l.Do(ctx, opts, onHold(work))
}

func (w *way) has(feature string) bool { return !slices.Contains(strings.Split(w.lacks, ","), feature) }

// locks reports whether the lease of a blob is one of the way's.
func (w *way) locks(blob string) bool {
	switch w.name {
	case "lease":
		return blob == "b"
	case "part":
		return blob == "job/0"
	}
	return blob == "job" || strings.HasPrefix(blob, "job/")
}

// work is what each holder does: it writes, works for a while or until it must stop, and writes again. Whatever is said of it is noted.
func (p *process) work(ctx context.Context, c *called, h holder, lasts time.Duration) error {
	v := &visit{p: p, id: h.ID(), kind: c.kind, from: time.Now(), name: "b"}
	if hold, ok := h.(*pessimistic.Hold); ok {
		v.hold, v.fence, v.name = hold, hold.Fence(), hold.Name()
	}
	p.mu.Lock()
	if c.works++; c.works == 1 {
		c.got = v.from
	}
	p.visits = append(p.visits, v)
	held := slices.ContainsFunc(p.leases, func(l *leased) bool { return l.id == v.id && (l.until.After(v.from) || l.ended != "") })
	p.mu.Unlock()
	if !held {
		p.complain("%s holds %s, whose lease it does not have", p.name, v.name)
	}
	p.begins(ctx, v, h)
	end := func() {
		p.mu.Lock()
		v.to = time.Now()
		p.mu.Unlock()
		p.inTime(v, v.to, v.to)
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { end(); close(ended) })
	p.fenced(ctx, v)
	_ = retry.Sleep(ctx, lasts-time.Since(v.from))
	if ctx.Err() == nil {
		p.trusts(v, h)
		p.fenced(ctx, v)
	}
	if stop() {
		end()
		return nil
	}
	<-ended
	lost := errors.Is(context.Cause(ctx), pessimistic.ErrLost)
	for v.valid = v.to; lost && p.event.long > 0 && h.Err() == nil && time.Since(v.to) < 20*time.Second; v.valid = time.Now() {
		bubble.Sleep(50 * time.Millisecond)
	}
	if lost {
		p.inTime(v, v.to, v.valid)
	}
	if lost && p.setting.fenced() { // a machine that stood still sends what it was about to send
		for i := range 3 {
			p.late.Go(func() { bubble.Sleep(time.Duration(i+1) * 8 * time.Second); p.fenced(p.ctx(), v) })
		}
	}
	if lost && p.setting.name == "reclaim" && v.hold != nil {
		if again, err := v.hold.Reclaim(p.ctx()); err == nil && again != v.hold {
			_ = p.work(again.Context(), c, again, 2*time.Second)
			_ = again.Release(p.ctx())
		}
	}
	return context.Cause(ctx)
}

// token is a holder of a fence that does not look whether it still holds the lock: it was asked, and then the machine stood still.
type token fence.Token

func (t token) Fence() fence.Token          { return fence.Token(t) }
func (t token) Guard(context.Context) error { return nil }

type ledger struct{ Marks string }

// fenced writes under the fence of a visit, if the case has fenced writes.
func (p *process) fenced(ctx context.Context, v *visit) {
	if !p.setting.fenced() || v.kind == "read" || v.fence == 0 {
		return
	}
	p.mu.Lock()
	one := &written{on: strings.ReplaceAll(v.name, "/", "-"), mark: " " + p.name + string(rune('a'+len(p.writes))), fence: v.fence, began: time.Now()}
	p.writes = append(p.writes, one)
	p.mu.Unlock()
	var err error
	if p.setting.name == "fenced blob" {
		target := blobs.NewJSON[ledger](p.ContainerOver(p).NewBlockBlobClient("data-" + one.on))
		_, err = optimistic.Update(ctx, blobs.Fenced(token(v.fence), target), func(_ context.Context, l *ledger) error {
			l.Marks += one.mark
			return nil
		}, &optimistic.UpdateOptions{Create: true})
	} else {
		_, err = tables.Transact(ctx, p.table(p), "p", func(ctx context.Context, tx *tables.Tx) error {
			var l ledger
			there, err := tx.Get(ctx, one.on, &l)
			if l.Marks += one.mark; err != nil {
				return err
			}
			if there {
				return tx.Update(one.on, l)
			}
			return tx.Insert(one.on, l)
		}, &tables.TransactOptions{Holder: token(v.fence)})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	one.ended, one.err = time.Now(), err
}

func (w *town) table(transport policy.Transporter) *aztables.Client {
	service, err := aztables.NewServiceClientWithNoCredential(w.Service.TableURL(), &aztables.ClientOptions{ClientOptions: policy.ClientOptions{Transport: transport}})
	w.check(err)
	return service.NewClient("rows")
}

// kept returns what is stored under the fence.
func (w *town) kept(on string) string {
	if w.setting.name == "fenced row" {
		var l ledger
		_, err := tables.Transact(w.ctx(), w.table(w.Service), "p", func(ctx context.Context, tx *tables.Tx) error {
			_, err := tx.Get(ctx, on, &l)
			return err
		}, nil)
		w.check(err)
		return l.Marks
	}
	v, err := optimistic.Read(w.ctx(), blobs.NewJSON[ledger](w.Service.BlockBlob("box", "data-"+on)), nil)
	if errors.Is(err, optimistic.ErrNotFound) {
		return ""
	}
	w.check(err)
	return v.Value.Marks
}
