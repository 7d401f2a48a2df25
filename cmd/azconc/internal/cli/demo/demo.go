package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/demo/scene"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/engine"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
)

type options struct {
	Engine     engine.Options
	Increments int
	OneIn      int
	Scenes     []string // by name; empty: all
	List       bool
	Timeline   string // the file of the page; "" if none
	OnAccount  bool   // flags name an account
}

func NewCmd(f *cli.Factory) *cobra.Command { return verb().Command(f) }

func verb() cli.Verb[options] {
	return cli.Verb[options]{
		Use:   "demo",
		Short: "Show failures on an emulator, and how azconc prevents them",
		Long: `Show failures on an emulator, and how azconc prevents them.

The first scene, lost-answers, compares the loops that documentation shows with azconc, behind a proxy that drops some responses.
The others follow Microsoft's "Managing concurrency in Azure Storage": each prints what was sent and what came back, and names the
library call and the command that do it. --scene plays those that it names.

The demo starts the service in memory, and stops it at the end. It needs no account and nothing else. With --engine azurite it
starts Microsoft's Azurite, which needs Node.js and npm and is installed first if it is missing; it has no files, so their scene is
skipped. --account-name or --connection-string plays the scenes on that account, except lost-answers; an account in the environment
is not used. What the scenes create has names of its own, begins with azconc, and is deleted at the end.

Scenes are played at the same time. One waits 16 s for a lease to expire.

--timeline writes one page of HTML that loads nothing: a lane for each client, its leases, pauses, lost responses and refused
writes, drawn from what was recorded.`,
		Example: `  azconc demo
  azconc demo --list
  azconc demo --scene editors,stale-etag --timeline timeline.html
  azconc demo --increments 200 --lose-one-in 3 -o json
  azconc demo --engine azurite`,
		Flags: func(opts *options, set *pflag.FlagSet) {
			opts.Engine.Flag(set)
			set.IntVar(&opts.Increments, "increments", 60, "how often the counter is incremented")
			set.IntVar(&opts.OneIn, "lose-one-in", 5, "one write in this many loses its response")
			set.StringSliceVar(&opts.Scenes, "scene", nil, "play the scenes with these `names` only, with commas between them")
			set.BoolVar(&opts.List, "list", false, "list the scenes, and play none")
			set.StringVar(&opts.Timeline, "timeline", "", "write the timeline of the scenes to this `file`, a page of HTML")
		},
		Parse: func(opts *options, in cli.Input) error {
			for _, name := range opts.Scenes {
				if _, ok := scene.Find(name); !ok && name != lostAnswers {
					return fail.WithHint(fail.Usagef("--scene %q is not the name of a scene", name), "azconc demo --list names them")
				}
			}
			for _, name := range accountFlags {
				opts.OnAccount = opts.OnAccount || in.Flags.Changed(name)
			}
			switch {
			case opts.OnAccount && in.Flags.Changed("engine"):
				return fail.WithHint(fail.Usagef("--engine starts an emulator, and the flags name an account"), "omit one of them")
			case opts.OnAccount && slices.Contains(opts.Scenes, lostAnswers):
				return fail.WithHint(fail.Usagef("--scene %s needs an emulator, and the flags name an account", lostAnswers), "the scene lost-response shows it on an account")
			case opts.Timeline != "" && len(opts.Scenes) == 1 && opts.Scenes[0] == lostAnswers:
				return fail.Usagef("--timeline: the scene %s has none", lostAnswers)
			}
			if opts.Increments < 1 {
				return fail.Usagef("--increments %d is not positive", opts.Increments)
			}
			if opts.OneIn < 3 {
				return fail.Usagef("--lose-one-in %d is less than 3: the plain loop would never end", opts.OneIn)
			}
			return nil
		},
		Run: run,
	}
}

// tally compares the successes that a loop reported with the increments that were stored.
type tally struct {
	Reported  int   `json:"reported"`
	Stored    int   `json:"stored"`
	Lost      int64 `json:"answers_lost"`
	Ambiguous int   `json:"ambiguous"`
	Resolved  int   `json:"resolved"`
	Requests  int   `json:"requests,omitempty"`
}

// failures is what the scene lost-answers has shown.
type failures struct {
	Increments   int   `json:"increments"`
	Plain        tally `json:"plain_loop"`
	Azconc       tally `json:"azconc"`
	StaleRefused bool  `json:"stale_write_refused"`
	CreatedOnce  bool  `json:"created_once"`

	FenceRefused   bool  `json:"paused_holder_refused"`
	LateWriteLands bool  `json:"paused_holder_lands_without_fence"`
	PlainQueue     tally `json:"plain_queue"`
	AzconcQueue    tally `json:"azconc_queue"`
}

func (r *failures) text(w io.Writer) {
	fmt.Fprintf(w, "\n%-28s %9s %9s\n", "", "reported", "stored")
	for _, row := range []struct {
		name string
		t    tally
	}{{"plain If-Match loop", r.Plain}, {"azconc blob update", r.Azconc}, {"plain queue", r.PlainQueue}, {"azconc queue", r.AzconcQueue}} {
		fmt.Fprintf(w, "%-28s %9d %9d\n", row.name, row.t.Reported, row.t.Stored)
	}
}

type counter struct {
	N int `json:"n"`
}

// failures plays the scene lost-answers.
func (d *demo) failures(ctx context.Context) error {
	d.direct = d.account.BlobURL
	proxy, err := startLossyProxy(ctx, d.direct, int64(d.o.OneIn))
	if err != nil {
		return err
	}
	defer proxy.close()
	queues, err := startLossyProxy(ctx, d.account.QueueURL, int64(d.o.OneIn))
	if err != nil {
		return err
	}
	defer queues.close()
	d.proxy, d.queues = proxy, queues
	for _, scene := range []func(context.Context) error{
		d.container, d.plainLoop, d.azconcLoop, d.staleWrite, d.createOnce, d.pausedHolder, d.plainQueue, d.inboxQueue,
	} {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	return nil
}

// demo is the running demonstration.
type demo struct {
	f       *cli.Factory
	o       *options
	account engine.Account
	direct  string // URL of the service
	proxy   *lossyProxy
	queues  *lossyProxy
	result  failures
}

// say prints progress to stderr: stdout is for the result.
func (d *demo) say(format string, args ...any) {
	if !d.f.Quiet {
		fmt.Fprintf(d.f.Err, format+"\n", args...)
	}
}

func (d *demo) blob(endpoint, name string) (*blockblob.Client, error) {
	credential, err := blob.NewSharedKeyCredential(d.account.Name, d.account.Key)
	if err != nil {
		return nil, err
	}
	options := &blockblob.ClientOptions{ClientOptions: d.f.ClientOptions()}
	options.Retry = policy.RetryOptions{RetryDelay: time.Millisecond} // the plain loop's; azconc does its own
	return blockblob.NewClientWithSharedKeyCredential(endpoint+"/demo/"+name, credential, options)
}

// box is the demo's container.
func (d *demo) box(endpoint string) (*container.Client, error) {
	credential, err := container.NewSharedKeyCredential(d.account.Name, d.account.Key)
	if err != nil {
		return nil, err
	}
	return container.NewClientWithSharedKeyCredential(endpoint+"/demo", credential, &container.ClientOptions{ClientOptions: d.f.ClientOptions()})
}

func (d *demo) container(ctx context.Context) error {
	client, err := d.box(d.direct)
	if err == nil {
		_, err = client.Create(ctx, nil)
	}
	return err
}

// start stores a counter of zero in the blob, not through the proxy.
func (d *demo) start(ctx context.Context, name string) (direct, lossy *blockblob.Client, err error) {
	if direct, err = d.blob(d.direct, name); err != nil {
		return nil, nil, err
	}
	if lossy, err = d.blob(d.proxy.url, name); err != nil {
		return nil, nil, err
	}
	_, err = direct.Upload(ctx, streaming.NopCloser(strings.NewReader(`{"n":0}`)), nil)
	d.proxy.lost.Store(0)
	return direct, lossy, err
}

func (d *demo) stored(ctx context.Context, client *blockblob.Client) (int, error) {
	v, err := optimistic.Read(ctx, blobs.NewJSON[counter](client), nil)
	if err != nil {
		return 0, err
	}
	return v.Value.N, nil
}

// plainLoop is the loop that documentation shows: read, change, write with If-Match, start over on 412.
func (d *demo) plainLoop(ctx context.Context) error {
	d.say("\n1. A counter is incremented %d times through a network that loses one response in %d.", d.o.Increments, d.o.OneIn)
	d.say("   First with the plain loop: GET, PUT with If-Match, start over on 412 …")
	direct, lossy, err := d.start(ctx, "plain.json")
	if err != nil {
		return err
	}
	t := &d.result.Plain
	for range d.o.Increments {
		if err := plainIncrement(ctx, lossy); err != nil {
			return err
		}
		t.Reported++
	}
	t.Lost = d.proxy.lost.Load()
	if t.Stored, err = d.stored(ctx, direct); err != nil {
		return err
	}
	d.say("   reported %d successes; the blob says %d. The SDK sent writes again whose responses were lost, met its own", t.Reported, t.Stored)
	d.say("   first try, and the loop took that for another writer.")
	return nil
}

func plainIncrement(ctx context.Context, client *blockblob.Client) error {
	for {
		got, err := client.DownloadStream(ctx, nil)
		if err != nil {
			return err
		}
		var c counter
		err = json.NewDecoder(got.Body).Decode(&c)
		_ = got.Body.Close()
		if err != nil {
			return err
		}
		c.N++
		content, err := json.Marshal(c)
		if err != nil {
			return err
		}
		_, err = client.Upload(ctx, streaming.NopCloser(strings.NewReader(string(content))), &blockblob.UploadOptions{
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: got.ETag}},
		})
		if !bloberror.HasCode(err, bloberror.ConditionNotMet) {
			return err
		}
	}
}

func (d *demo) azconcLoop(ctx context.Context) error {
	d.say("\n2. The same with azconc: azconc blob update demo/counter.json --jq '.n += 1'")
	direct, lossy, err := d.start(ctx, "counter.json")
	if err != nil {
		return err
	}
	t := &d.result.Azconc
	for range d.o.Increments {
		res, err := optimistic.Update(ctx, blobs.NewJSON[counter](lossy), func(_ context.Context, c *counter) error {
			c.N++
			return nil
		}, nil)
		if err != nil && !errors.Is(err, optimistic.ErrOutcomeUnknown) {
			return err
		}
		if err == nil {
			t.Reported++
		}
		t.Ambiguous += res.Ambiguous
		t.Resolved += res.Resolved
		t.Requests += res.Requests
	}
	t.Lost = d.proxy.lost.Load()
	if t.Stored, err = d.stored(ctx, direct); err != nil {
		return err
	}
	d.say("   reported %d successes; the blob says %d. %d responses were lost, and %d writes were found in the blob's lineage.", t.Reported, t.Stored, t.Lost, t.Resolved)
	return nil
}

func (d *demo) staleWrite(ctx context.Context) error {
	d.say("\n3. A stale write: azconc blob put demo/counter.json --if-match <an old ETag>")
	client, err := d.blob(d.direct, "counter.json")
	if err != nil {
		return err
	}
	stale := &blobs.UploadOptions{Conditions: optimistic.Conditions{IfMatch: `"0x8D0000000000000"`}}
	_, err = blobs.Upload(ctx, client, strings.NewReader("{}"), stale)
	d.result.StaleRefused = errors.Is(err, optimistic.ErrConflict)
	d.say("   %v", err)
	return nil
}

func (d *demo) createOnce(ctx context.Context) error {
	d.say("\n4. Two writers create the same blob: azconc blob put demo/once.json --if-none-match '*'")
	client, err := d.blob(d.proxy.url, "once.json")
	if err != nil {
		return err
	}
	create := &blobs.UploadOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}}
	_, first := blobs.Upload(ctx, client, strings.NewReader("first"), create)
	_, second := blobs.Upload(ctx, client, strings.NewReader("second"), create)
	d.result.CreatedOnce = first == nil && errors.Is(second, optimistic.ErrExists)
	d.say("   the first: %s; the second: %v", orCreated(first), second)
	return nil
}

func orCreated(err error) string {
	if err == nil {
		return http.StatusText(http.StatusCreated)
	}
	return err.Error()
}
