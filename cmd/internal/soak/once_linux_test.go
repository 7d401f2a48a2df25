package soak

import (
	"context"
	"errors"
	"fmt"
	"time"

	idem "github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/pessimistic"
)

const (
	onceLife  = 5 * time.Second
	onceLanes = 2
)

// workOnces runs a function once per key; all workers try the same keys at the same time.
func workOnces(ctx context.Context, w *worker) {
	locker, err := pessimistic.NewLocker(w.site.container("onces"), &pessimistic.LockerOptions{Owner: w.Process, Duration: leaseTime, QuickFirst: true})
	must(err)
	once, err := idem.New(locker, w.site.table("onces"), nil)
	must(err)
	w.repeat(ctx, "once", onceLanes, 400*time.Millisecond, func(l *lane) {
		key := fmt.Sprintf("key-%d-%d", now()/int64(onceLife), l.roll(4))
		n := l.journal.begin(note{Kind: "once", Lane: l.name, Of: key})
		out, err := once.Do(ctx, key, []byte(key), func(ctx context.Context, h *pessimistic.Hold) ([]byte, error) {
			l.rest(ctx, 80*time.Millisecond)
			if l.roll(20) == 0 {
				return nil, errors.New("failed")
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			n.N = 1 // it has run
			l.journal.fact(note{Kind: "ran", Lane: l.name, Of: key, V: n.ID})
			return fmt.Appendf(nil, "%s %d", l.name+w.Process, n.ID), nil
		})
		if err == nil {
			n.Text = string(out.Value)
		}
		l.journal.end(n, outcome(err))
	})
}

func judgeOnces(_ context.Context, s *soak) error {
	same, once := s.say("one result for each key of a Once"), s.say("one run for each key of a Once, or a reason")
	calls := s.records.of("once").by(func(n note) string { return n.Of })
	runs := s.records.of("ran").by(func(n note) string { return n.Of })
	for key, notes := range calls {
		result, excused := "", 0
		for _, n := range notes {
			same.judged++
			switch {
			case n.Out == ok && result == "":
				result = n.Text
			case n.Out == ok && n.Text != result:
				same.wrong("%s: %q for one caller, %q for another", key, result, n.Text)
			case n.Out != ok && (n.N == 1 || n.End == 0): // it ran, and its caller was not told that it is done
				excused++
			}
		}
		for _, n := range runs[key] { // its lock was lost
			if s.troubled("", n.Begin-int64(aftermath), n.Begin+int64(aftermath)) {
				excused++
			}
		}
		once.judged++
		if len(runs[key]) > 1+excused {
			once.wrong("%s ran %d times, and %d runs ended without a result", key, len(runs[key]), excused)
		}
	}
	return nil
}
