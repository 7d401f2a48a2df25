package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/monitor"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/table"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// execHandler runs the command.
type execHandler struct {
	f       *cli.Factory
	command string
	out     *handlerOutput
	inbox   *effects      // to which its output is applied; nil prints it
	backoff retry.Backoff // for messages that are postponed
}

const (
	statusPoison = 65 // EX_DATAERR
	statusLater  = 75 // EX_TEMPFAIL

	// maxEffect is more than the writes of a transaction can have (REST: "Performing entity group transactions", 4 MiB),
	// as JSON.
	maxEffect = 32 << 20
)

func (h *execHandler) handle(ctx context.Context, m *idempotent.Message) error {
	headers := []byte("{}")
	if m.Headers != nil {
		var err error
		if headers, err = json.Marshal(m.Headers); err != nil {
			return err
		}
	}
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
	run := func(w io.Writer) error {
		c.Stdout = w
		end, err := c.Run(ctx)
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if why := end.Failure(h.inbox != nil); why != "" {
			return h.failure(m, end, why)
		}
		return nil
	}
	if h.inbox == nil {
		return h.out.run(run)
	}
	printed := &proc.Head{Limit: maxEffect}
	if err := run(printed); err != nil {
		return err
	}
	if printed.Cut() {
		return fmt.Errorf("the command printed %d bytes: a transaction holds at most %d", printed.N, maxEffect)
	}
	return h.inbox.apply(ctx, m, printed.Data)
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

// handlerOutput receives the output of commands, and does not mix that of several: with one command at a time it passes through,
// otherwise it is in a file until its command has ended.
type handlerOutput struct {
	to   io.Writer
	many bool
	mu   sync.Mutex // held while something is written
}

// run calls fn with the writer for a command's output. If the output cannot be passed on, the command has not failed: its effect
// has happened.
func (o *handlerOutput) run(fn func(io.Writer) error) error {
	if !o.many {
		return fn(lenient{o.to})
	}
	kept, err := os.CreateTemp("", "azconc-output-")
	if err != nil {
		return err
	}
	_ = os.Remove(kept.Name()) // a KILL leaves no file behind; Windows refuses as long as it is open
	defer func() { _, _ = kept.Close(), os.Remove(kept.Name()) }()
	err = fn(struct{ io.Writer }{kept}) // not the file itself, which processes that are left behind would write to
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, e := kept.Seek(0, io.SeekStart); e == nil {
		_, _ = io.Copy(o.to, kept)
	}
	return err
}

// lenient is a writer that ignores errors.
type lenient struct{ w io.Writer }

func (l lenient) Write(p []byte) (int, error) {
	_, _ = l.w.Write(p)
	return len(p), nil
}

const sendLinesHelp = `The command can also send what follows from the message, in lines among the writes. azconc stores these messages in the
same transaction, sends them once the writes are made, and after a crash sends what is left, under the same ids:

  {"send": {"queue": "shipments", "body": {"order": 17}}}

The queue is one of --send-to. A body that is a string is sent as its text, any other as JSON. "id", "headers", "delay" and
"ttl" are those of azconc queue send; the id has a default that all copies share.
`

// effects applies the output of commands: writes of one partition, in one transaction with the marker that the message was applied,
// and messages to queues.
type effects struct {
	inbox     *idempotent.Inbox
	partition string
	queues    []string
}

func newEffects(f *cli.Factory, opts *consumeOptions) (_ *effects, err error) {
	outbox := map[string]*idempotent.Producer{}
	for _, name := range opts.SendTo {
		queue, err := f.Queue(name)
		if err != nil {
			return nil, err
		}
		if outbox[name], err = idempotent.NewProducer(queue, &idempotent.ProducerOptions{CreateQueue: opts.Create, Hooks: f.Monitor.Hooks()}); err != nil {
			return nil, err
		}
	}
	e := &effects{partition: opts.Inbox.Partition, queues: opts.SendTo}
	e.inbox, err = openInbox(f, opts.Inbox, outbox)
	return e, err
}

func (e *effects) applied(ctx context.Context, m *idempotent.Message) (bool, error) {
	return e.inbox.Applied(ctx, m, e.partition)
}

func (e *effects) apply(ctx context.Context, m *idempotent.Message, out []byte) error {
	ops, sends, err := parsePrinted(out, e.partition, e.queues)
	if err != nil {
		return err
	}
	return e.inbox.Apply(ctx, m, e.partition, func(ctx context.Context, tx *tables.Tx) error {
		for _, s := range sends {
			if err := e.inbox.Send(ctx, tx, s.queue, s.message); err != nil {
				return err
			}
		}
		return table.ApplyAll(ctx, tx, ops)
	})
}

// outgoing is a message that a command sends.
type outgoing struct {
	queue   string
	message idempotent.Outgoing
}

const printedSource = "what the command printed"

// parsePrinted reads what a command has printed: writes of a partition, and messages to these queues.
func parsePrinted(out []byte, partition string, queues []string) (ops []table.Operation, sends []outgoing, err error) {
	if err := fail.NotUTF8(out); err != nil {
		return nil, nil, &fail.FilterError{What: printedSource, Err: err}
	}
	var writes []byte
	d := json.NewDecoder(bytes.NewReader(out))
	for n := 1; ; n++ {
		var object json.RawMessage
		if err := d.Decode(&object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			writes = out // which says what is wrong
			break
		}
		var line struct {
			Send json.RawMessage `json:"send"`
		}
		if json.Unmarshal(object, &line) != nil || line.Send == nil {
			writes = append(append(writes, object...), '\n')
			continue
		}
		send, err := parseSend(object, queues)
		if err != nil {
			return nil, nil, &fail.FilterError{What: fmt.Sprintf("object %d of %s is not a message to send", n, printedSource), Err: errors.New(fail.PlainJSON(err))}
		}
		sends = append(sends, send)
	}
	if len(bytes.TrimSpace(writes)) > 0 { // otherwise only the marker is written
		ops, err = table.ParseOperations(printedSource, partition, writes)
	}
	return ops, sends, err
}

func parseSend(object []byte, queues []string) (outgoing, error) {
	var line struct {
		Send struct {
			Queue   string            `json:"queue"`
			Body    json.RawMessage   `json:"body"`
			ID      *string           `json:"id"`
			Headers map[string]string `json:"headers"`
			Delay   string            `json:"delay"`
			TTL     string            `json:"ttl"`
		} `json:"send"`
	}
	d := json.NewDecoder(bytes.NewReader(object))
	d.DisallowUnknownFields()
	if err := d.Decode(&line); err != nil {
		return outgoing{}, errors.New(fail.PlainJSON(err))
	}
	s := line.Send
	m := idempotent.Outgoing{ID: ptr.Value(s.ID), Headers: s.Headers, Body: s.Body}
	var text string
	switch {
	case len(s.Body) == 0 || string(s.Body) == "null":
		return outgoing{}, errors.New("it has no body")
	case json.Unmarshal(s.Body, &text) == nil:
		m.Body = []byte(text)
	}
	if !slices.Contains(queues, s.Queue) {
		return outgoing{}, fmt.Errorf("its queue %q is none of --send-to", s.Queue)
	}
	for to, given := range map[*time.Duration]string{&m.Delay: s.Delay, &m.TTL: s.TTL} {
		if given != "" {
			var err error
			if *to, err = flags.ParseDuration(given); err != nil {
				return outgoing{}, err
			}
		}
	}
	if s.ID != nil && *s.ID == "" {
		return outgoing{}, errors.New("its id is empty")
	}
	return outgoing{s.Queue, m}, checkMessage("", m)
}
