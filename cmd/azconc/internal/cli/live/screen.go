package live

import (
	"context"
	"io"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// onScreen reports whether a view is a screen on which a user can act. bubbletea would open the terminal by itself if stdin were
// something else.
func onScreen(f *cli.Factory, o Options) bool {
	return f.InTerminal && f.OutTerminal && f.Text() && !f.Quiet && !o.Tables && f.Env.Get("TERM") != "dumb"
}

// screen shows the rounds until the user quits, or ctx ends. It then leaves the terminal as it was, and nothing running.
func screen(ctx context.Context, f *cli.Factory, r *rounds, o Options) error {
	account := ""
	if a, err := f.Account(); err == nil {
		account = a.Name()
	}
	working, end := context.WithCancel(ctx)
	defer end()
	e := newEngine(r.next, o.Interval)
	m := newModel(r.view, account, o.Interval, e, f.Redactor.Redact)
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(f.In), tea.WithOutput(f.Out), tea.WithEnvironment(f.Env),
		tea.WithWindowSize(80, 24), tea.WithoutSignalHandler()) // the size of a terminal that does not know its own; a signal ends ctx
	e.send = p.Send
	before := f.Err
	if f.ErrTerminal { // a line there would be in the middle of the screen
		f.Err = &notes{to: p.Send, redact: f.Redactor.Redact}
	}
	var work sync.WaitGroup
	work.Go(func() { e.run(working) })
	_, err := p.Run()
	end()
	work.Wait()
	f.Err = before
	if left := e.unseen; left != nil {
		if left.text != "" {
			f.Notef("%s: %s", left.action.Command, show.OneLine(left.text))
		}
		if err == nil {
			err = left.err // what was asked for is not done, or not known
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// notes passes on lines for the bottom of the screen. It is safe for concurrent use.
type notes struct {
	to     func(tea.Msg)
	redact func(string) string
}

var _ io.Writer = (*notes)(nil)

func (n *notes) Write(p []byte) (int, error) {
	if line := strings.TrimSpace(string(p)); line != "" {
		n.to(noteMsg(n.redact(line)))
	}
	return len(p), nil
}

// why is an error of an action in a line.
func why(err error) string {
	v := fail.Judge(err)
	text := fail.Message(err, v, "", "")
	if hint := fail.Hint(err, v, "", ""); hint != "" {
		text += "; " + hint
	}
	return show.OneLine(text)
}
