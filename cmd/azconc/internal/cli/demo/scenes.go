package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/demo/scene"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/engine"
	"github.com/azconc/azconc/pkg/azaccount"
)

// lostAnswers is the name of the scene that compares the loops of documentation with azconc.
const lostAnswers = "lost-answers"

// accountFlags are those that name an account.
var accountFlags = []string{"account-name", "connection-string", "connection-string-file", "blob-endpoint"}

type result struct {
	Outcome string `json:"outcome"`
	*failures
	Scenes   []scene.Result `json:"scenes"`
	Timeline string         `json:"timeline,omitempty"`
}

// Text prints the summary. What the scenes show was printed as they ended.
func (r result) Text(w io.Writer) {
	if r.failures != nil {
		r.failures.text(w)
	}
	fmt.Fprintln(w)
	for _, s := range r.Scenes {
		fmt.Fprintf(w, "%-22s %-8s %s\n", s.Name, s.Outcome, s.Reason)
	}
	if r.Timeline != "" {
		fmt.Fprintf(w, "\nThe timeline is in %s\n", r.Timeline)
	}
}

type listed struct {
	Name  string `json:"name"`
	Shows string `json:"shows"`
}

type list struct {
	Outcome string   `json:"outcome"`
	Scenes  []listed `json:"scenes"`
}

func (l list) Text(w io.Writer) {
	for _, s := range l.Scenes {
		fmt.Fprintf(w, "%-22s %s\n", s.Name, s.Shows)
	}
}

func sceneList() list {
	l := list{Outcome: "listed", Scenes: []listed{{lostAnswers, "lost responses: the loops that documentation shows, and azconc"}}}
	for _, s := range scene.All {
		l.Scenes = append(l.Scenes, listed{s.Name, s.Shows})
	}
	return l
}

func run(ctx context.Context, f *cli.Factory, opts *options) error {
	if opts.List {
		return f.Print(sceneList())
	}
	d := &demo{f: f, o: opts, result: failures{Increments: opts.Increments}}
	rig, stop, err := d.rig(ctx)
	if err != nil {
		return err
	}
	defer stop()
	play := func(name string) bool { return len(opts.Scenes) == 0 || slices.Contains(opts.Scenes, name) }
	var scenes []scene.Scene
	for _, s := range scene.All {
		if play(s.Name) {
			scenes = append(scenes, s)
		}
	}
	r := result{Outcome: "done", Scenes: make([]scene.Result, len(scenes)), Timeline: opts.Timeline}
	failed := make([]error, len(scenes))
	ended := make([]chan struct{}, len(scenes))
	ctx, cancel := context.WithCancel(ctx)
	var playing sync.WaitGroup
	defer playing.Wait()
	defer cancel()
	for i, s := range scenes {
		ended[i] = make(chan struct{})
		playing.Go(func() {
			defer close(ended[i])
			r.Scenes[i], failed[i] = scene.Play(ctx, rig, s)
		})
	}
	if play(lostAnswers) && !opts.OnAccount {
		if err := d.failures(ctx); err != nil {
			return err
		}
		r.failures = &d.result
	}
	for i := range scenes {
		<-ended[i]
		d.tell(r.Scenes[i])
	}
	if opts.Timeline != "" {
		var page bytes.Buffer
		if err := scene.Timeline(&page, r.Scenes); err != nil {
			return err
		}
		if err := os.WriteFile(opts.Timeline, page.Bytes(), 0o666); err != nil {
			return errors.Join(append(failed, err)...)
		}
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return f.Print(r)
}

// rig returns where the scenes are played, and the function that ends it.
func (d *demo) rig(ctx context.Context) (scene.Rig, func(), error) {
	rig := scene.Rig{Options: d.f.ClientOptions, Suffix: strings.ToLower(rand.Text()[:8])}
	d.f.ClientOptions() // makes the transport that all clients share
	if d.o.OnAccount {
		a, err := d.f.Account()
		rig.Account = a
		return rig, func() {}, err
	}
	if d.o.Engine.Engine == engine.Azurite {
		d.say("starting Azurite …")
	}
	server, err := engine.Start(ctx, d.f, d.o.Engine)
	if err != nil {
		return rig, nil, err
	}
	stop := func() { _ = server.Stop() } // an error at its end does not matter to the demo
	d.say("The emulator is %s.", server.Name)
	d.account = server.Accounts[0]
	rig.Account, err = azaccount.Resolve(azaccount.Flags{ConnectionString: d.account.ConnectionString()}, func(string) string { return "" })
	if err != nil {
		stop()
	}
	return rig, stop, err
}

// tell prints what a scene has shown to stderr.
func (d *demo) tell(r scene.Result) {
	d.say("\n%s: %s", r.Name, r.Shows)
	if r.Outcome == "skipped" {
		d.say("   skipped: %s", r.Reason)
	}
	for _, a := range r.Acts {
		d.say("   %s %s", a.Client, a.Does)
		d.say("      %s · %s", a.Library, a.Command)
		for _, q := range a.Requests {
			d.say("      → %s %s%s", q.Method, q.Resource, headers(q.Sent))
			status := fmt.Sprint(q.Status)
			if q.Status == 0 {
				status = "no response"
			}
			if q.Code != "" {
				status += " " + q.Code
			}
			if q.Lost {
				status += ", lost on its way"
			}
			d.say("      ← %s%s", status, headers(q.Got))
		}
	}
}

func headers(h map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(&b, "  %s: %s", name, h[name])
	}
	return b.String()
}
