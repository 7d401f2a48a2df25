package soak

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest/history"
)

// aftermath is how long after an effect a trouble of its process can keep it from being recorded.
const aftermath = 15 * time.Second

func judgeMessages(ctx context.Context, s *soak) error {
	effects := s.records.of("effect").by(func(n note) string { return n.Of + " " + n.Text })
	lost := s.say("no message lost")
	once, paidOnce := s.say("one effect for each message with markers, or a reason"), s.say("one effect for each message with an inbox")
	for _, sent := range s.records.of("send") {
		count := int64(len(effects[sent.Of+" "+sent.Text]))
		if sent.Of == payments {
			found, err := stored(ctx, tables.NewEntity[paid](s.site.table(payments), partOf(sent.Text), "paid-"+sent.Text))
			if err != nil {
				return err
			}
			count = found.N
			paidOnce.judged++
			if count > 1 {
				paidOnce.wrong("%s was paid %d times", sent.Text, count)
			}
		}
		lost.judged++
		if sent.Out == ok && count == 0 {
			lost.wrong("%s in %s was sent, and never handled", sent.Text, sent.Of)
		}
	}
	for what, all := range effects {
		once.judged++
		once.check(s.repeated(what, all))
	}
	s.judgeHandlers()
	return nil
}

// repeated returns an error if a message had effects that nothing explains. Effects of a process that has just been
// continued do not count: it cannot know yet that its message may be another's. Of the others, each but the last must be one
// that nobody could learn of.
func (s *soak) repeated(what string, effects records) error {
	known := slices.DeleteFunc(slices.Clone(effects), func(e note) bool {
		return slices.ContainsFunc(s.troubles, func(t trouble) bool {
			return t.what == pause && t.process == e.Process && t.from < e.Begin && t.to > e.Begin-int64(resumed)
		})
	})
	for i, e := range known {
		if i < len(known)-1 && !s.troubled(e.Process, e.Begin, e.Begin+int64(aftermath)) {
			return fmt.Errorf("%s had %d effects; nothing happened to %s after the one at %d", what, len(effects), e.Process, e.Begin)
		}
	}
	return nil
}

// resumed is how long a process that was stopped may take to notice that time has passed.
const resumed = 2 * time.Second

// judgeHandlers judges that no two handlers of a message, or of its copies, worked at a time, where markers promise that.
func (s *soak) judgeHandlers() {
	alone := s.say("handlers of a message alone")
	for what, notes := range s.records.of("handle").by(func(n note) string { return n.Of + " " + n.Text }) {
		var holds []history.Hold
		for _, n := range notes {
			if n.Of != payments && !s.troubled(n.Process, n.V-int64(resumed), n.V) {
				holds = append(holds, history.Hold{Who: n.Process, From: time.Unix(0, n.Begin), To: time.Unix(0, n.V)})
			}
		}
		alone.judged += known(holds)
		if err := history.Exclusive(holds); err != nil {
			alone.wrong("%s: %v", what, err)
		}
	}
}
