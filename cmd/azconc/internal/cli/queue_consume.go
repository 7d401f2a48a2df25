package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/retry"
)

type queueConsumeOptions struct {
	factory  *Factory
	Queue    string
	Exec     string
	Markers  string // table
	Inbox    string // table/partition
	Claims   string // container
	Session  string // container
	Poison   string // queue
	Options  idempotent.ConsumerOptions
	Backoff  time.Duration
	SoftStop time.Duration
	Create   bool

	inbox tableRef
}

// defaultMarkers is the table of --markers.
const defaultMarkers = "azconcmarkers"

func newQueueConsumeCmd(f *Factory, runF func(*queueConsumeOptions) error) *cobra.Command {
	opts := &queueConsumeOptions{factory: f}
	o := &opts.Options
	var encoding string
	cmd := &cobra.Command{
		Use:   "consume <queue> --exec <command>",
		Short: "Run a command for every message",
		Long: `Run a command, with a shell, for every message, until told to stop.

The command finds the body on stdin, and AZCONC_MESSAGE_ID, AZCONC_KEY (the sender's id, which copies have in common),
AZCONC_ATTEMPT, AZCONC_DELIVERIES, AZCONC_FENCE and AZCONC_HEADERS (a JSON object) in its environment. Its exit status says what
becomes of the message:

  0   done: it is deleted
  75  postponed: it is delivered again after a pause that grows, and the attempt does not count
  65  poison: it goes to the poison queue at once
  else, or ended by a signal: it failed, and is delivered again after --backoff, up to --max-attempts times

While the command runs its message is kept hidden; if it cannot be, the command and all it has started is ended before
another can receive the message. What it prints passes through; with --concurrency above 1, when it has ended.

A table remembers messages: --markers, which is created if it is missing. --dedupe says what for:

  owner       of several copies of a message one is handled, and the others are deleted (the default)
  complete    what the command prints is kept as well, and printed again for a copy (up to 64 KiB, or nothing)
  redelivery  only a message that was handled and could not be deleted is remembered; copies are handled like others
  none        there is no table, and copies are handled like others

A message that comes again is handled at once, although the consumer that had it before may only have been slow. With
--sessions it is left to that one, as long as it lives.

With --inbox the effect of a message happens once, however often it was sent and delivered, and whichever process was killed:
what the command prints are writes of one table partition, as azconc table transact takes them, which azconc carries out in one
transaction with a mark that the message was applied. The command itself can be run again, so it should do nothing else. The
partition remembers the messages, so --markers is not used unless it is given.

TERM or INT lets running commands finish for --soft-stop, and a second one ends them. Messages that are not finished are
delivered again.`,
		Args: resourceArgs("<queue>"),
		Example: `  azconc queue consume orders --exec ./handle --poison orders-poison
  azconc queue consume orders --exec './order-to-rows' --inbox orders/eu
  azconc queue consume orders --exec 'jq .order' --exit-when-empty`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Queue, err = parseQueue(args[0]); err != nil {
				return err
			}
			if opts.Poison != "" {
				if opts.Poison, err = parseQueue(opts.Poison); err != nil {
					return err
				}
			}
			if opts.Markers == "" && o.Dedupe != idempotent.DedupeNone && (opts.Inbox == "" || o.Dedupe != "") {
				opts.Markers = defaultMarkers
			}
			if err := checkTable("--markers", opts.Markers); err != nil {
				return err
			}
			if opts.Inbox != "" {
				if opts.inbox, err = parseTableRef(opts.Inbox, 2); err != nil {
					return err
				}
			}
			if err := checkContainer("--claim-check", opts.Claims); err != nil {
				return err
			}
			if err := checkContainer("--sessions", opts.Session); err != nil {
				return err
			}
			if o.Encoding, err = parseReceiving(encoding); err != nil {
				return err
			}
			if err := opts.check(); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return queueConsumeRun(cmd.Context(), opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.Exec, "exec", "", "`command` to run, with a shell")
	flags.StringVar(&opts.Markers, "markers", "", "`table` that remembers which copy of a message is handled; created if it is missing (default "+defaultMarkers+")")
	flags.StringVar((*string)(&o.Dedupe), "dedupe", "", "what --markers remembers: {owner | complete | redelivery | none} (default owner; none with --inbox)")
	flags.StringVar(&opts.Inbox, "inbox", "", "`table/partition` that what the command prints is applied to, once per message")
	flags.StringVar(&opts.Session, "sessions", "", "`container` for a lease by which other consumers know whether this one lives")
	flags.StringVar(&opts.Claims, "claim-check", "", "`container` with the bodies that are too large for a message")
	flags.StringVar(&opts.Poison, "poison", "", "`queue` for messages that cannot be handled; made if it is missing")
	flags.BoolVar(&opts.Create, "create", false, "create the queue if it is missing")
	flags.IntVar(&o.Concurrency, "concurrency", 1, "how many commands run at a time")
	flags.DurationVar(&o.Visibility, "visibility", 30*time.Second, "how long others wait for a message whose consumer has crashed: 3s to 12h")
	flags.DurationVar(&o.HandlerTimeout, "handler-timeout", 0, "end a command after this long")
	flags.IntVar(&o.MaxAttempts, "max-attempts", 5, "after so many failures a message is poison; negative: never")
	flags.IntVar(&o.MaxDeliveries, "max-deliveries", 20, "after so many deliveries without an end a message is poison; negative: never")
	flags.DurationVar(&opts.Backoff, "backoff", time.Second, "pause after the first failure, which then doubles up to 15m")
	flags.BoolVar(&o.ExitWhenEmpty, "exit-when-empty", false, "end when no message can be received")
	flags.IntVar(&o.MaxMessages, "max-messages", 0, "end after so many messages; 0 is no bound")
	flags.DurationVar(&opts.SoftStop, "soft-stop", 20*time.Second, "how long running commands may go on when told to stop")
	flags.StringVar(&encoding, "encoding", "auto", "how messages are read: {auto | envelope | base64 | text}")
	return cmd
}

func parseReceiving(s string) (idempotent.Encoding, error) {
	switch e := idempotent.Encoding(s); e {
	case idempotent.Auto, idempotent.Envelope, idempotent.Base64, idempotent.Text:
		return e, nil
	}
	return "", usagef("--encoding %q is neither auto, envelope, base64 nor text", s)
}

func (opts *queueConsumeOptions) check() error {
	o := opts.Options
	switch o.Dedupe {
	case "", idempotent.DedupeOwner, idempotent.DedupeComplete, idempotent.DedupeRedelivery, idempotent.DedupeNone:
	default:
		return usagef("--dedupe %q is neither owner, complete, redelivery nor none", o.Dedupe)
	}
	switch {
	case opts.Exec == "":
		return usagef("--exec is missing")
	case o.Concurrency < 1 || o.Concurrency > 1000:
		return usagef("--concurrency %d is not between 1 and 1000", o.Concurrency)
	case o.Visibility < 3*time.Second || o.Visibility > 12*time.Hour || o.Visibility%time.Second != 0:
		return usagef("--visibility %v is not between 3s and 12h, in whole seconds", o.Visibility)
	case o.HandlerTimeout < 0:
		return usagef("--handler-timeout %v is negative", o.HandlerTimeout)
	case o.MaxAttempts == 0:
		return usagef("--max-attempts 0: a message is tried once at least; a negative number is no bound")
	case o.MaxDeliveries == 0:
		return usagef("--max-deliveries 0: a message is delivered once at least; a negative number is no bound")
	case opts.Backoff < time.Second:
		return usagef("--backoff %v is less than 1s", opts.Backoff)
	case o.MaxMessages < 0:
		return usagef("--max-messages %d is negative", o.MaxMessages)
	case opts.SoftStop < 0:
		return usagef("--soft-stop %v is negative", opts.SoftStop)
	case opts.Session != "" && (opts.Markers == "" || o.Dedupe == idempotent.DedupeRedelivery || o.Dedupe == idempotent.DedupeNone):
		return withHint(usagef("--sessions needs --markers, with --dedupe owner or complete"), "the marker of a message names the session")
	case opts.Inbox != "" && o.Dedupe == idempotent.DedupeComplete:
		return usagef("--inbox applies what the command prints, and --dedupe complete keeps it: choose one")
	case opts.Poison == opts.Queue:
		return usagef("--poison %s is the queue itself", opts.Poison)
	}
	return nil
}

// consumeResult sums up what became of the messages.
type consumeResult struct {
	Outcome   string         `json:"outcome"`
	Queue     string         `json:"resource"`
	Messages  map[string]int `json:"messages"`
	Handled   int            `json:"handled"`
	Requests  int64          `json:"requests"`
	ElapsedMS int64          `json:"elapsed_ms"`
}

func (r consumeResult) text(io.Writer) {}

func queueConsumeRun(ctx context.Context, opts *queueConsumeOptions) error {
	f := opts.factory
	queue, err := f.Queue(opts.Queue)
	if err != nil {
		return err
	}
	o := opts.Options
	o.Backoff = retry.Backoff{Base: opts.Backoff}
	o.SoftStop = &opts.SoftStop
	if opts.Inbox != "" && opts.Markers == "" {
		o.Dedupe = idempotent.DedupeInbox
	}
	if opts.Poison != "" {
		if o.Poison, err = f.Queue(opts.Poison); err != nil {
			return err
		}
	}
	if opts.Create {
		if err := f.createQueue(ctx, queue, opts.Queue); err != nil {
			return err
		}
	}
	if opts.Markers != "" && o.Dedupe != idempotent.DedupeNone {
		if o.Markers, err = f.markers(opts.Markers); err == nil {
			err = f.createMarkers(ctx, opts.Markers)
		}
		if err != nil {
			return withHint(err, "--dedupe none does without a table, and copies are handled like others")
		}
	}
	if opts.Session != "" {
		if o.Sessions, err = f.sessions(opts.Session); err != nil {
			return err
		}
	}
	if o.ClaimCheck, err = f.claimCheck(opts.Claims); err != nil {
		return err
	}
	counts := &messageCounts{f: f, n: map[string]int{}, progress: f.progress("finished")}
	o.Event = counts.add
	h := &execHandler{f: f, command: opts.Exec, backoff: retry.Backoff{Base: opts.Backoff, Cap: 15 * time.Minute}}
	h.out = &handlerOutput{to: f.Out, many: o.Concurrency > 1}
	if f.JSON() {
		h.out.to = f.Err
	}
	if o.Dedupe == idempotent.DedupeComplete {
		h.keep = maxKeptResult
	}
	if opts.Inbox != "" {
		h.keep = maxEffect
		if h.effect, err = f.applyIn(opts.inbox); err != nil {
			return err
		}
		if o.Applied, err = f.appliedIn(opts.inbox); err != nil {
			return err
		}
	}
	if o.Dedupe == idempotent.DedupeComplete {
		o.Replay = func(_ context.Context, _ *idempotent.Message, result []byte) error {
			h.out.print(result)
			return nil
		}
	}
	c, err := idempotent.NewConsumer(queue, h.handle, &o)
	if err != nil {
		return &usageError{err: err}
	}
	// The frame has made the first signal the end of ctx, and would let the second one end azconc.
	signals, done := make(chan os.Signal, 4), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var hurry sync.WaitGroup
	hurry.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-signals:
				if n > 0 {
					c.Hurry()
				}
			case <-done:
				return
			}
		}
	})
	err = c.Run(ctx)
	signal.Stop(signals)
	close(done)
	hurry.Wait()
	counts.progress.end()
	stats := c.Stats()
	if err == nil {
		if _, signalled := errors.AsType[*SignalError](context.Cause(ctx)); !signalled && ctx.Err() != nil {
			err = context.Cause(ctx) // the time was up
		}
	}
	if err != nil {
		return err
	}
	if !f.JSON() {
		return nil
	}
	return f.Print(consumeResult{Outcome: "stopped", Queue: opts.Queue, Messages: counts.n, Handled: stats.Handled,
		Requests: f.requests.Load(), ElapsedMS: time.Since(f.began).Milliseconds()})
}
