package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/optimistic"
)

// execHandler runs the command.
type execHandler struct {
	f       *Factory
	command string
	effect  func(ctx context.Context, m *idempotent.Message, out []byte) error // of what it has printed; nil prints it
	out     sync.Mutex                                                         // one command's output at a time
}

// statusPoison is EX_DATAERR. Any other failure is for later, 75 (EX_TEMPFAIL) by name.
const statusPoison = 65

func (h *execHandler) handle(ctx context.Context, m *idempotent.Message) error {
	c := &shellCommand{
		line: h.command, what: "the command", stdin: m.Body, stderr: h.f.Err,
		env: append(append([]string{}, h.f.Env...),
			"AZCONC_MESSAGE_ID="+m.ID, "AZCONC_KEY="+m.Key, "AZCONC_QUEUE="+m.Queue, fmt.Sprint("AZCONC_ATTEMPT=", m.Attempt),
			fmt.Sprint("AZCONC_DELIVERIES=", m.Deliveries), "AZCONC_FENCE="+m.Token().String()),
		grace: func(cause error) time.Duration {
			if errors.Is(cause, idempotent.ErrOwnershipLost) {
				return 0 // another may have the message in a moment
			}
			return 2 * time.Second
		},
	}
	end, err := c.run(ctx)
	if h.effect == nil {
		h.print(end.out)
		m.SetResult(end.out)
	}
	why := end.failure(h.effect != nil)
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case why == "" && h.effect != nil:
		return h.effect(ctx, m, end.out)
	case why == "":
		return nil
	}
	if end.said != "" {
		why += ": " + end.said
	}
	if end.Code == statusPoison {
		return idempotent.Poison(errors.New(why))
	}
	return errors.New(why)
}

// print passes on what a command has printed, whole, so that two at a time do not mix. With -o json it goes to stderr.
func (h *execHandler) print(text []byte) {
	h.out.Lock()
	defer h.out.Unlock()
	to := h.f.Out
	if h.f.JSON() {
		to = h.f.Err
	}
	_, _ = to.Write(text)
}

// applyIn has what a command prints be the effect of its message: writes of one partition, in a transaction with the mark
// that the message was applied.
func (f *Factory) applyIn(at tableRef) (func(ctx context.Context, m *idempotent.Message, out []byte) error, error) {
	inbox, err := f.inbox(at)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, m *idempotent.Message, out []byte) error {
		var ops []tableOperation
		var err error
		if len(bytes.TrimSpace(out)) > 0 { // otherwise there is nothing to do but to remember the message
			if ops, err = parseOperations("what the command printed", out); err != nil {
				return err
			}
		}
		return inbox.Apply(ctx, m, at.Partition, func(ctx context.Context, tx *optimistic.Tx) error {
			return applyAll(ctx, tx, ops)
		})
	}, nil
}

func (f *Factory) inbox(at tableRef) (*idempotent.Inbox, error) {
	tables, err := f.TableService()
	if err != nil {
		return nil, err
	}
	return idempotent.NewInbox(tables.NewClient(at.Table))
}

func (f *Factory) sessions(name string) (*idempotent.Sessions, error) {
	r, err := parseContainer(name)
	if err != nil {
		return nil, err
	}
	c, err := f.Container(r)
	if err != nil {
		return nil, err
	}
	return idempotent.NewSessions(c, nil)
}
