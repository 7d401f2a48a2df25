package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/monitor"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/table"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/retry"
)

// execHandler runs the command.
type execHandler struct {
	f       *cli.Factory
	command string
	out     *handlerOutput
	keep    int                                                                // how much of what it prints is the result
	effect  func(ctx context.Context, m *idempotent.Message, out []byte) error // of what it has printed; nil prints it
	backoff retry.Backoff                                                      // for messages that are postponed
}

const (
	statusPoison = 65 // EX_DATAERR
	statusLater  = 75 // EX_TEMPFAIL

	// maxEffect is more than the writes of a transaction can have (REST: "Performing entity group transactions", 4 MiB),
	// as JSON.
	maxEffect = 32 << 20
	// maxKeptResult is the longest result that DedupeComplete stores. One byte more makes the library report that it is too long.
	maxKeptResult = 64<<10 + 1
)

func (h *execHandler) handle(ctx context.Context, m *idempotent.Message) error {
	headers, err := json.Marshal(m.Headers)
	if err != nil {
		return err
	}
	if m.Headers == nil {
		headers = []byte("{}")
	}
	printed := &proc.Head{Limit: h.keep}
	c := &proc.Shell{
		Line: h.command, What: "the command", Stdin: bytes.NewReader(m.Body), Stderr: h.f.Err,
		Env: append(monitor.Environ(ctx, h.f.Env),
			"AZCONC_MESSAGE_ID="+m.ID, "AZCONC_KEY="+m.Key, "AZCONC_QUEUE="+m.Queue, fmt.Sprint("AZCONC_ATTEMPT=", m.Attempt),
			fmt.Sprint("AZCONC_DELIVERIES=", m.Deliveries), "AZCONC_FENCE="+m.Token().String(), "AZCONC_HEADERS="+string(headers)),
		Grace: func(cause error) time.Duration {
			if errors.Is(cause, idempotent.ErrOwnershipLost) {
				return 0 // another may have the message in a moment
			}
			return 2 * time.Second
		},
	}
	var end proc.ShellEnd
	if h.effect != nil {
		c.Stdout = printed
		end, err = c.Run(ctx)
	} else {
		err = h.out.run(func(w io.Writer) (err error) {
			c.Stdout = io.MultiWriter(w, printed)
			end, err = c.Run(ctx)
			return err
		})
	}
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if why := end.Failure(h.keep > 0); why != "" {
		return h.failure(m, end, why)
	}
	if h.effect != nil {
		if printed.Cut() {
			return fmt.Errorf("the command printed %d bytes: a transaction holds at most %d", printed.N, maxEffect)
		}
		return h.effect(ctx, m, printed.Data)
	}
	m.SetResult(printed.Data)
	return nil
}

// failure returns the fate of a message whose command failed.
func (h *execHandler) failure(m *idempotent.Message, end proc.ShellEnd, why string) error {
	if end.Said != "" {
		why += ": " + end.Said
	}
	switch end.Code {
	case statusPoison:
		return idempotent.Poison(errors.New(why))
	case statusLater:
		pause := max(time.Second, (h.backoff.Base + h.backoff.Wait(m.Deliveries-1)).Round(time.Second))
		return &postponement{fmt.Errorf("%s: %w", why, idempotent.Postpone(pause))}
	}
	return errors.New(why)
}

// postponement is the error of a command that has postponed its message.
type postponement struct{ error }

func (e *postponement) Unwrap() error { return e.error }

// applyIn returns a function that applies the output of a command as the effect of its message: writes of one partition, in one
// transaction with the marker that the message was applied, and messages to these queues.
func applyIn(f *cli.Factory, at ref.Table, queues []string, create bool) (func(ctx context.Context, m *idempotent.Message, out []byte) error, error) {
	outbox, err := producers(f, queues, create)
	if err != nil {
		return nil, err
	}
	inbox, err := inbox(f, at, outbox)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, m *idempotent.Message, out []byte) error {
		ops, sends, err := parsePrinted(out, queues)
		if err != nil {
			return err
		}
		return inbox.Apply(ctx, m, at.Partition, func(ctx context.Context, tx *tables.Tx) error {
			for _, s := range sends {
				if err := inbox.Send(ctx, tx, s.queue, s.message); err != nil {
					return err
				}
			}
			return table.ApplyAll(ctx, tx, ops)
		})
	}, nil
}

// appliedIn returns a function that reports whether a message was applied.
func appliedIn(f *cli.Factory, at ref.Table) (func(ctx context.Context, m *idempotent.Message) (bool, error), error) {
	inbox, err := inbox(f, at, nil)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, m *idempotent.Message) (bool, error) {
		return inbox.Applied(ctx, m, at.Partition)
	}, nil
}

func inbox(f *cli.Factory, at ref.Table, outbox map[string]*idempotent.Producer) (*idempotent.Inbox, error) {
	tables, err := f.TableService()
	if err != nil {
		return nil, err
	}
	return idempotent.NewInbox(tables.NewClient(at.Table), &idempotent.InboxOptions{Outbox: outbox})
}

func sessions(f *cli.Factory, name string) (*idempotent.Sessions, error) {
	r, err := ref.ParseContainer(name)
	if err != nil {
		return nil, err
	}
	c, err := f.Container(r)
	if err != nil {
		return nil, err
	}
	return idempotent.NewSessions(c, nil)
}
