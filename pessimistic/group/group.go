package group

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// The sentinels of a group.
var (
	// ErrMoved is the cause with which the context of a part's work ends when the part is to go to another member.
	ErrMoved = errors.New("the part goes to another member")

	// ErrMixed reports a member that divides the same group into another number of parts, or is of another version of azconc.
	ErrMixed = errors.New("all members of a group must have the same number of parts and the same version")
)

// maxParts bounds the renewals of a member that is alone, and what a list shows at once.
const maxParts = 256

// Group is a member of a group of processes that share the parts of a job. It is safe for concurrent use, except that only one Run may be
// active at a time.
type Group struct {
	parts  int
	name   string
	id     string
	path   string
	locker *pessimistic.Locker // of the parts
	member *pessimistic.Locker // of the members
	opts   Options

	mu  sync.Mutex
	has map[int]*tenure // parts that are being taken, worked on or given up
}

// Options configures a Group. The zero value selects the defaults.
type Options struct {
	// Drain is how long work may take to return after its context has ended. Then its part is released, whether it has returned or
	// not: its context has ended, and work that hangs must not keep the part for ever. Defaults to 30 s.
	Drain time.Duration

	// Pause sets the pause before work that has returned is begun again: at least Pause.Base, and after errors in a row up to
	// Pause.Cap. Work of a minute or longer ends such a row. Defaults to 1 s and 1 min.
	Pause retry.Backoff

	_ struct{}
}

// Work works on a part until ctx ends: with ErrMoved, a *LostError, or the cause with which Run's ctx ended.
type Work func(ctx context.Context, part int, h *pessimistic.Hold) error

// New returns a member of the group of that name, which has parts 0 to parts-1, 1 to 256 of them. All members must have the same number.
// It sends no request.
//
// Of the Locker's options, Duration is also how long the parts of a member that dies stay with it. HandOvers and AtLeast have no effect.
func New(k *pessimistic.Locker, name string, parts int, opts *Options) (*Group, error) {
	g := &Group{name: name, parts: parts, opts: ptr.Value(opts), has: map[int]*tenure{}}
	switch {
	case k == nil:
		return nil, errNoLocker
	case parts < 1 || parts > maxParts:
		return nil, fmt.Errorf("group: %d parts: must be 1 to %d", parts, maxParts)
	case name == "":
		return nil, errors.New("group: no name")
	case g.opts.Drain < 0:
		return nil, fmt.Errorf("group: Options.Drain: %v is negative", g.opts.Drain)
	case k.Options().Duration == pessimistic.Infinite:
		return nil, errors.New("group: LockerOptions.Duration: Infinite: nobody could take the parts of a member that dies")
	}
	g.opts.Drain = cmp.Or(g.opts.Drain, 30*time.Second)
	g.opts.Pause.Base = cmp.Or(g.opts.Pause.Base, time.Second)
	g.opts.Pause.Cap = max(cmp.Or(g.opts.Pause.Cap, time.Minute), g.opts.Pause.Base)
	random := uuid.New()
	g.id, g.path = hex.EncodeToString(random[:6]), k.Path(name)
	if err := locks.CheckName(k.Options().Prefix, g.memberLock()); err != nil {
		return nil, err
	}
	var err error
	if g.locker, err = k.With(func(o *pessimistic.LockerOptions) {
		o.Owner, o.HandOvers, o.AtLeast = signature(o.Owner, g.id, parts), -1, 0
	}); err != nil {
		return nil, err
	}
	g.member, err = g.locker.With(func(o *pessimistic.LockerOptions) { o.QuickFirst = true }) // its fence protects nothing
	return g, err
}

func (g *Group) memberLock() string { return g.name + "/" + memberPrefix + g.id }

// Share returns how many parts this member works on, and how many there are. A part counts as long as its context has not ended, judged
// by the clocks of this machine, so that all members together never count more than there are: a limit that is divided by shares is
// kept also while parts move. It sends no request.
func (g *Group) Share() (have, of int) {
	for _, t := range g.tenures((*tenure).works) {
		if stop, _, _ := t.hold.Remaining(); stop > 0 {
			have++
		}
	}
	return have, g.parts
}
