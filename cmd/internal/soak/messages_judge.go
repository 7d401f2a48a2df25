package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest/history"
)

// aftermath is how long after an effect a trouble of its process can keep it from being recorded.
const aftermath = 15 * time.Second

func judgeMessages(ctx context.Context, s *site, j *judgement) error {
	effects := j.records.of("effect").by(func(n note) string { return n.Of + " " + n.Text })
	lost, once, paidOnce := j.say("no message lost"), j.say("one effect for each message with markers, or a reason"), j.say("one effect for each message with an inbox")
	for _, sent := range j.records.of("send") {
		count := int64(len(effects[sent.Of+" "+sent.Text]))
		if sent.Of == payments {
			v, err := optimistic.Read(ctx, tables.NewEntity[paid](s.table(payments), partOf(sent.Text), "paid-"+sent.Text), nil)
			if err != nil && !errors.Is(err, optimistic.ErrNotFound) {
				return err
			}
			if count = 0; err == nil {
				count = v.Value.N
			}
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
		once.check(j.repeated(what, all))
	}
	j.judgeHandlers()
	return nil
}

// repeated returns an error if a message had effects that nothing explains. Effects of a process that has just been
// continued do not count: it cannot know yet that its message may be another's. Of the others, each but the last must be one
// that nobody could learn of.
func (j *judgement) repeated(what string, effects records) error {
	known := slices.DeleteFunc(slices.Clone(effects), func(e note) bool {
		return slices.ContainsFunc(j.troubles, func(t trouble) bool {
			return t.what == pause && t.process == e.Process && t.from < e.Begin && t.to > e.Begin-int64(resumed)
		})
	})
	for i, e := range known {
		if i < len(known)-1 && !j.troubled(e.Process, e.Begin, e.Begin+int64(aftermath)) {
			return fmt.Errorf("%s had %d effects; nothing happened to %s after the one at %d", what, len(effects), e.Process, e.Begin)
		}
	}
	return nil
}

// resumed is how long a process that was stopped may take to notice that time has passed.
const resumed = 2 * time.Second

// judgeHandlers judges that no two handlers of a message, or of its copies, worked at a time, where markers promise that.
func (j *judgement) judgeHandlers() {
	alone := j.say("handlers of a message alone")
	for what, notes := range j.records.of("handle").by(func(n note) string { return n.Of + " " + n.Text }) {
		var holds []history.Hold
		for _, n := range notes {
			if n.Of != payments && !j.troubled(n.Process, n.V-int64(resumed), n.V) {
				holds = append(holds, history.Hold{Who: n.Process, From: time.Unix(0, n.Begin), To: time.Unix(0, n.V)})
			}
		}
		alone.judged += known(holds)
		if err := history.Exclusive(holds); err != nil {
			alone.wrong("%s: %v", what, err)
		}
	}
}
