package queue

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lock"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/retry"
)

type consumeOptions struct {
	Queue    string
	Exec     string
	Markers  string
	Inbox    ref.Table
	SendTo   []string // queues
	Claims   ref.Blob // container
	Poison   string   // queue
	Options  idempotent.ConsumerOptions
	Backoff  time.Duration
	SoftStop time.Duration
	Create   bool

	Manifest manifest
}

// The defaults of --markers and --poison, which are those of idempotent.NewWorker.
const (
	defaultMarkers = "azconcmarkers"
	poisonSuffix   = "-poison"
)

func newConsumeCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "consume <queue> --exec <command>",
		Short: "Run a command for every message",
		Long: `Run a command, with a shell, for every message, until TERM or INT arrives.

The command gets the body on stdin, and AZCONC_MESSAGE_ID, AZCONC_KEY (the sender's id, which all copies share),
AZCONC_ATTEMPT, AZCONC_DELIVERIES, AZCONC_FENCE and AZCONC_HEADERS (a JSON object) in its environment. Its exit status decides
what happens to the message:

  0   done: it is deleted
  75  postponed: it is redelivered after a growing delay, and the attempt does not count
  65  poison: it goes to the poison queue, --poison, at once
  any other status, or a signal: it failed, and is redelivered after --backoff; after --max-attempts failures it is poison

While the command runs, azconc keeps its message hidden; if it cannot, it stops the command and every process it started before
another consumer can receive the message. Output of the command passes through; with --concurrency above 1, when it has ended.

The table --markers, which is created if it is missing, records messages. --dedupe selects which, and to what end:

  owner  one of several copies of a message is handled, and the others are deleted (the default)
  none   no table is used, and copies are handled like other messages

With --inbox a message takes effect once, however often it is sent and delivered, even if processes are killed: the command
prints writes to one table partition, in the format of azconc table transact, and azconc carries them out in one transaction
with a mark that the message was applied. The command itself can run again, so it should do nothing else. The
partition records the messages, so --markers is not used unless it is given.

` + sendLinesHelp + `
After TERM or INT, running commands have --soft-stop to finish; a second signal ends them. Unfinished messages are
redelivered, and the exit code is 0.

While the queue is empty, it is asked after 0.1 s, and then twice as long each time, up to --poll: 19,200 requests a day with 5s,
3,200 with 30s.

With --exit-when-empty or --max-messages, the exit code is 8 if a message failed or became poison, and was not handled since. A
postponed message has not failed. --exit-when-empty reports how many hidden messages are left.

--manifest prints, as YAML, what runs this consumer in a cluster and scales it by the length of the queue, with the other flags that
are given: a ScaledJob of KEDA, a Deployment with a ScaledObject, or a job of Azure Container Apps.`,
		Example: `  azconc queue consume orders --exec ./handle
  azconc queue consume orders --exec './order-to-rows' --inbox orders/eu
  azconc queue consume orders --exec 'jq .order' --exit-when-empty
  azconc queue consume orders --exec ./handle --account-name contoso --manifest keda-job --image contoso.azurecr.io/orders:7`,
	}
	opts := &consumeOptions{}
	opts.add(cmd.Flags())
	parse := func(arg string) (name string, err error) {
		if name, err = ParseName(arg); err != nil {
			return name, err
		}
		opts.Queue = name
		if opts.Poison == "" {
			if opts.Poison, err = ParseName(name + poisonSuffix); err != nil {
				return name, fail.Usagef("--poison is missing: %s is too long for %s%s, the default", name, name, poisonSuffix)
			}
		}
		if opts.Inbox.Table != "" && opts.Markers == "" && !cmd.Flags().Changed("dedupe") {
			opts.Options.Dedupe = idempotent.DedupeInbox
		}
		if err := opts.check(); err != nil {
			return name, err
		}
		return name, opts.Manifest.parse(f, cmd.Flags(), opts)
	}
	return cli.On(f, cmd, parse, noClient, func(ctx context.Context, _ string, _ struct{}) (cli.Result, error) {
		return nil, opts.consume(ctx, f)
	})
}

func (opts *consumeOptions) add(set *pflag.FlagSet) {
	o := &opts.Options
	o.Concurrency, o.Visibility, o.Poll.Cap = 1, 30*time.Second, 5*time.Second
	opts.Backoff, opts.SoftStop = time.Second, 20*time.Second
	set.StringVar(&opts.Exec, "exec", "", "`command` to run, with a shell")
	flags.Required(set, "exec", "")
	TableFlag(set, &opts.Markers, "markers", "`table` that records which copy of a message is handled; created if it is missing (default "+defaultMarkers+")")
	flags.OneOf(set, (*string)(&o.Dedupe), "dedupe", "what --markers records; none with --inbox", string(idempotent.DedupeOwner), string(idempotent.DedupeNone))
	named(set, &opts.Inbox, "inbox", "`table/partition` to which the command's output is applied, once per message", parseInbox)
	named(set, &opts.SendTo, "send-to", "`queues`, with commas between them, that the command's output can send to; needs --inbox", parseQueues)
	named(set, &opts.Claims, "claim-check", "`container` with bodies that are too large for a message", ref.ParseContainer)
	NameFlag(set, &opts.Poison, "poison", "`queue` for messages that cannot be handled; created if it is missing (default <queue>"+poisonSuffix+")")
	set.BoolVar(&opts.Create, "create", false, "create the queue if it is missing, and those of --send-to")
	flags.Int(set, &o.Concurrency, "concurrency", 1, "how many commands run at a time")
	flags.Within(set, &o.Visibility, "visibility", 3*time.Second, 12*time.Hour, "time until a message is redelivered after its consumer crashed: 3s to 12h")
	flags.Duration(set, &o.HandlerTimeout, "handler-timeout", true, "stop a command after this long")
	set.IntVar(&o.MaxAttempts, "max-attempts", 5, "after this many failures a message is poison; negative: never")
	set.IntVar(&o.MaxDeliveries, "max-deliveries", 20, "after this many deliveries without a result a message is poison; negative: never")
	flags.Within(set, &opts.Backoff, "backoff", time.Second, 0, "pause after the first failure, which then doubles up to 15m")
	flags.Duration(set, &o.Poll.Cap, "poll", false, "longest pause between two receives while the queue is empty")
	set.BoolVar(&o.ExitWhenEmpty, "exit-when-empty", false, "end when no message can be received")
	flags.Int(set, &o.MaxMessages, "max-messages", 0, "end after this many messages; 0 is no limit")
	flags.Duration(set, &opts.SoftStop, "soft-stop", true, "how long running commands may continue after a signal")
	flags.Metrics(set)
	flags.OneOf(set, (*string)(&o.Encoding), "encoding", "format of the messages", string(idempotent.Auto), string(idempotent.Envelope), string(idempotent.Base64), string(idempotent.Text))
	opts.Manifest.add(set)
}

func (opts *consumeOptions) check() error {
	o := opts.Options
	switch {
	case o.Concurrency > 1000:
		return fail.Usagef("--concurrency %d is more than 1000", o.Concurrency)
	case o.MaxAttempts == 0:
		return fail.Usagef("--max-attempts 0: a message is tried at least once; a negative number is no limit")
	case o.MaxDeliveries == 0:
		return fail.Usagef("--max-deliveries 0: a message is delivered at least once; a negative number is no limit")
	case o.Poll.Cap < 100*time.Millisecond || o.Poll.Cap > time.Hour:
		return fail.Usagef("--poll %v is not between 100ms and 1h", o.Poll.Cap)
	case opts.Poison == opts.Queue:
		return fail.Usagef("--poison %s is the queue itself", opts.Poison)
	case opts.SendTo != nil && opts.Inbox.Table == "":
		return fail.Usagef("--send-to needs --inbox, which stores the messages with the writes")
	}
	return nil
}

func (opts *consumeOptions) consume(ctx context.Context, f *cli.Factory) error {
	if opts.Manifest.Form != "" {
		return opts.Manifest.print(f.Out)
	}
	queue, err := f.Queue(opts.Queue)
	if err != nil {
		return err
	}
	o := opts.Options
	o.Backoff = retry.Backoff{Base: opts.Backoff}
	o.SoftStop = max(opts.SoftStop, 1) // 0 is at once, and not the default
	if o.Poison, err = f.Queue(opts.Poison); err != nil {
		return err
	}
	o.CreateQueue = opts.Create
	if o.Dedupe.NeedsMarkers() {
		if o.Markers, err = openMarkers(f, cmp.Or(opts.Markers, defaultMarkers)); err != nil {
			return err
		}
	}
	if o.ClaimCheck, err = openClaims(f, opts.Claims, strings.TrimSuffix(opts.Queue, poisonSuffix)); err != nil {
		return err
	}
	counts := &messageCounts{f: f, n: map[string]int{}, progress: f.Progress("finished")}
	if o.ExitWhenEmpty || o.MaxMessages > 0 {
		counts.unhandled = map[string]observe.Kind{}
	}
	o.Hooks = observe.Join(f.Monitor.Hooks(), observe.Hooks{Span: f.Monitor.Receiving, Event: counts.add})
	h := &execHandler{f: f, command: opts.Exec, backoff: retry.Backoff{Base: opts.Backoff, Cap: 15 * time.Minute}}
	h.out = &handlerOutput{to: f.Out, many: o.Concurrency > 1}
	if !f.Text() {
		h.out.to = f.Err
	}
	if opts.Inbox.Table != "" {
		if h.inbox, err = newEffects(f, opts); err != nil {
			return err
		}
		o.Applied = h.inbox.applied
	}
	c, err := idempotent.NewConsumer(queue, h.handle, &o)
	if err != nil {
		return &fail.UsageError{Err: err}
	}
	// The frame has made the first signal the end of ctx, and would let the second one end azconc.
	signals := make(chan os.Signal, 4)
	proc.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ended := lock.Until(func(ended <-chan struct{}) {
		for n := 0; ; n++ {
			select {
			case <-signals:
				if n > 0 {
					c.StopNow()
				}
			case <-ended:
				return
			}
		}
	})
	draining := context.AfterFunc(ctx, f.Monitor.Drain)
	err = c.Run(ctx)
	draining()
	signal.Stop(signals)
	ended()
	counts.progress.End()
	if err == nil && !fail.Signalled(ctx) {
		err = context.Cause(ctx) // the time was up
	}
	if err != nil {
		return err
	}
	return counts.conclude(ctx, queue, opts, c.Stats().Handled)
}
