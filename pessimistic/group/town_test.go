package group

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/aztest/history"
	"github.com/azconc/azconc/pkg/retry"
)

const duration = time.Minute // of the leases

// source is a source of random numbers that goroutines share.
type source struct {
	mu  sync.Mutex
	pcg *rand.PCG
}

// Uint64 implements rand.Source.
func (s *source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pcg.Uint64()
}

// town is a group of simulated processes, and what the judges need to know of them.
type town struct {
	t     *testing.T
	w     *pesstest.World
	parts int
	rand  *rand.Rand

	mu      sync.Mutex // guards what follows, and the fields of tenures
	tenures []*spell
	ended   map[error]int // the causes with which contexts of work ended
	members []*resident   // that live
	joins   int
	all     sync.WaitGroup
}

// spell is the time in which the work on a part had a context that lived, in a process that lived.
type spell struct {
	who      *resident
	part     int
	fence    int64
	from, to time.Time // to is zero while it lasts
	drained  time.Time // when work returned that was told to end because of a move or a leave; zero before
}

// resident is a process with a member.
type resident struct {
	*town
	number int
	group  *Group
	leave  context.CancelCauseFunc
	left   chan struct{} // closed when Run has returned
	cut    atomic.Bool
	dead   bool
	drain  func() time.Duration // how long its work takes to return
	sent   atomic.Int64
}

var errTerm = errors.New("terminated")

func newTown(t *testing.T, w *pesstest.World, seed uint64, parts int) *town {
	return &town{t: t, w: w, parts: parts, rand: rand.New(&source{pcg: rand.NewPCG(seed, 43)}), ended: map[error]int{}}
}

// Do implements policy.Transporter.
func (r *resident) Do(request *http.Request) (*http.Response, error) {
	if r.cut.Load() {
		refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		return nil, &url.Error{Op: request.Method, URL: request.URL.String(), Err: refused}
	}
	r.sent.Add(1)
	return r.w.Faults.Do(request)
}

// join starts a process.
func (v *town) join() *resident {
	v.t.Helper()
	r := &resident{town: v, number: v.joins, left: make(chan struct{}), drain: func() time.Duration { return 0 }}
	k, err := pessimistic.NewLocker(v.w.ContainerOver(r), &pessimistic.LockerOptions{Duration: duration, Owner: fmt.Sprint("web-", v.rand.IntN(1000))})
	if err == nil {
		r.group, err = New(k, "ingest", v.parts, &Options{Drain: 10 * time.Second})
	}
	if err != nil {
		v.t.Fatal(err)
	}
	var random sync.Mutex
	own := rand.New(rand.NewPCG(v.rand.Uint64(), 0))
	ctx, leave := context.WithCancelCause(retry.WithRandom(context.Background(), func() float64 {
		random.Lock()
		defer random.Unlock()
		return own.Float64()
	}))
	r.leave = leave
	v.joins++
	v.members = append(v.members, r)
	v.all.Go(func() {
		defer close(r.left)
		if err := r.group.Run(ctx, r.work); !errors.Is(err, errTerm) {
			v.t.Errorf("process %d ran until %v", r.number, err)
		}
	})
	return r
}

func (r *resident) work(ctx context.Context, part int, h *pessimistic.Hold) error {
	s := &spell{who: r, part: part, fence: int64(h.Fence()), from: time.Now()}
	r.mu.Lock()
	if ctx.Err() == nil && !r.dead {
		r.tenures = append(r.tenures, s)
	}
	r.mu.Unlock()
	over := make(chan struct{})
	context.AfterFunc(ctx, func() {
		r.mu.Lock()
		if s.to.IsZero() {
			s.to = time.Now()
			r.ended[cause(ctx)]++
		}
		r.mu.Unlock()
		close(over)
	})
	<-over
	bubble.Sleep(r.drain())
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := cause(ctx); !r.dead && (c == ErrMoved || c == errTerm) && !errors.Is(h.Err(), pessimistic.ErrLost) {
		s.drained = time.Now()
	}
	return nil
}

// cause returns what kind of cause ended a context.
func cause(ctx context.Context) error {
	for _, known := range []error{ErrMoved, errTerm, pessimistic.ErrLost} {
		if errors.Is(context.Cause(ctx), known) {
			return known
		}
	}
	return context.Cause(ctx)
}

// term ends a process by a signal: it drains and leaves.
func (v *town) term(r *resident) {
	v.members = slices.DeleteFunc(v.members, func(m *resident) bool { return m == r })
	r.leave(errTerm)
}

// kill ends a process at once: no request of it arrives any more, and nothing of it works.
func (v *town) kill(r *resident) {
	r.cut.Store(true)
	v.mu.Lock()
	r.dead = true
	for _, s := range v.tenures {
		if s.who == r && s.to.IsZero() {
			s.to = time.Now()
		}
	}
	v.mu.Unlock()
	v.term(r)
}

// end ends all processes.
func (v *town) end() {
	for _, r := range slices.Clone(v.members) {
		v.term(r)
	}
	v.all.Wait()
	bubble.Sleep(duration + time.Second) // releases that were lost
}

// working returns how many parts each process works on, and an error unless every part has exactly one.
func (v *town) working() (map[*resident]int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := map[int]*resident{}
	counts := map[*resident]int{}
	for _, r := range v.members {
		counts[r] = 0
	}
	for _, s := range v.tenures {
		if !s.to.IsZero() {
			continue
		}
		if other := at[s.part]; other != nil {
			return nil, fmt.Errorf("part %d is worked on twice", s.part)
		}
		at[s.part] = s.who
		counts[s.who]++
	}
	if len(at) != v.parts {
		return counts, fmt.Errorf("%d of %d parts are worked on", len(at), v.parts)
	}
	return counts, nil
}

// even is a judge: every part is worked on, and every member has its share.
func (v *town) even() error {
	counts, err := v.working()
	if err != nil {
		return err
	}
	floor := v.parts / len(v.members)
	most := (v.parts + len(v.members) - 1) / len(v.members)
	for r, n := range counts {
		if n < floor || n > most {
			return fmt.Errorf("%d members, and process %d has %d parts", len(v.members), r.number, n)
		}
	}
	return nil
}

// within returns how long it took until the group was even, or fails the test after most.
func (v *town) within(most time.Duration, what string) time.Duration {
	v.t.Helper()
	began := time.Now()
	for {
		synctest.Wait() // the work of a member that has just been told to leave has noticed it
		err := v.even()
		if err == nil {
			return time.Since(began)
		}
		if time.Since(began) >= most {
			v.t.Fatalf("%s: after %v: %v", what, most, err)
		}
		bubble.Sleep(100 * time.Millisecond)
	}
}

// exclusive is the judge of the promise: no part has two contexts that live, work that has to move has returned before it begins at
// another member, and the fences of each part grow.
func (v *town) exclusive() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make([][]history.Hold, v.parts)
	for _, s := range v.tenures {
		h := history.Hold{Who: fmt.Sprint("process ", s.who.number), Fence: s.fence, Asked: s.from, From: s.from, To: s.to}
		if s.to.IsZero() {
			h.To = time.Now()
		} else if s.to.Before(s.drained) {
			h.To = s.drained
		}
		all[s.part] = append(all[s.part], h)
	}
	for part, holds := range all {
		if err := errors.Join(history.Exclusive(holds), history.Growing(holds)); err != nil {
			return fmt.Errorf("part %d: %w", part, err)
		}
	}
	return nil
}

// moved returns how many contexts have ended with ErrMoved, and how many tenures have begun.
func (v *town) moved() (moved, begun int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.ended[ErrMoved], len(v.tenures)
}

// waited returns for how long a part has waited at most, after its work had returned, until another member worked on it.
func (v *town) waited() (most time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	last := make([]*spell, v.parts)
	for _, s := range v.tenures {
		if before := last[s.part]; before != nil && !before.drained.IsZero() {
			most = max(most, s.from.Sub(before.drained))
		}
		last[s.part] = s
	}
	return most
}
