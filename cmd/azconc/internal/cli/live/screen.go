package live

import (
	"context"
	"io"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
)

// onScreen reports whether a view is a screen. bubbletea would open the terminal by itself if stdin were something else.
func onScreen(f *cli.Factory) bool {
	return f.InTerminal && f.OutTerminal && f.Text() && !f.Quiet && f.Env.Get("TERM") != "dumb"
}

// screen shows the rounds until the user quits, or ctx ends. It then leaves the terminal as it was, and nothing running.
func screen(ctx context.Context, f *cli.Factory, v View) error {
	account := ""
	if a, err := f.Account(); err == nil {
		account = a.Name()
	}
	p := tea.NewProgram(newModel(v, account, f.Redactor.Redact), tea.WithContext(ctx), tea.WithInput(f.In), tea.WithOutput(f.Out), tea.WithEnvironment(f.Env),
		tea.WithWindowSize(80, 24), tea.WithoutSignalHandler()) // the size of a terminal that does not know its own; a signal ends ctx
	before := f.Err
	if f.ErrTerminal { // a line there would be in the middle of the screen
		f.Err = notes(func(line string) { p.Send(noteMsg(f.Redactor.Redact(line))) })
	}
	working, end := context.WithCancel(ctx)
	defer end()
	var work sync.WaitGroup
	work.Go(func() {
		watch(working, v.Interval, func(ctx context.Context, last board) board { return fetch(ctx, f, v, last) }, func(b board) { p.Send(b) })
	})
	_, err := p.Run()
	end()
	work.Wait()
	f.Err = before
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// noteMsg is a line for the bottom of the screen.
type noteMsg string

// notes passes lines on.
type notes func(line string)

var _ io.Writer = (notes)(nil)

func (n notes) Write(p []byte) (int, error) {
	if line := strings.TrimSpace(string(p)); line != "" {
		n(line)
	}
	return len(p), nil
}
