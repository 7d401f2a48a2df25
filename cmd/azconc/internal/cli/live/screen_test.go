package live

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

// display keeps the output to a terminal. It is safe for concurrent use.
type display struct {
	mu   sync.Mutex
	got  bytes.Buffer
	more chan struct{}
}

func (d *display) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.got.Write(p)
	select {
	case d.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (d *display) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.got.String()
}

// until waits until a text is displayed.
func (d *display) until(t *testing.T, want string) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for !strings.Contains(d.String(), want) {
		select {
		case <-d.more:
		case <-limit:
			t.Fatalf("%q is not displayed: %q", want, d.String())
		}
	}
}

// session runs the screen of a view whose only row is a lock that can be broken.
func session(t *testing.T, ctx context.Context, view View, env ...string) (out *display, keyboard io.Writer, end func() error) {
	t.Helper()
	in, keys := io.Pipe()
	out = &display{more: make(chan struct{}, 1)}
	s := &cli.Streams{In: in, Out: out, Err: out, InTerminal: true, OutTerminal: true, ErrTerminal: true}
	f := cli.NewFactory(s, append(cli.Env{"TERM=xterm-256color", "COLORTERM=truecolor", "TTY_FORCE=1", "AZURE_STORAGE_CONNECTION_STRING=UseDevelopmentStorage=true"}, env...))
	done := make(chan error, 1)
	go func() {
		defer f.Close()
		done <- Show(ctx, f, view)
	}()
	return out, keys, func() error {
		t.Helper()
		defer keys.Close()
		select {
		case err := <-done:
			return err
		case <-time.After(20 * time.Second):
			t.Fatal("the screen is not left")
			return nil
		}
	}
}

func oneLock() View {
	return viewOf(
		Source{"locks in jobs", func(context.Context) ([]Row, error) { return []Row{lockOf("nightly", "web-1")}, nil }},
		Source{"queue gone", func(context.Context) ([]Row, error) { return nil, errors.New("not there") }},
	)
}

func viewOf(sources ...Source) View {
	return View{Title: "azconc top", Sections: locks, Interval: time.Hour, Sources: func(context.Context) ([]Source, string, error) { return sources, "", nil }}
}

const leftScreen = "\x1b[?1049l" // the screen that was there before

func TestTheScreenIsLeftAsItWas(t *testing.T) {
	for name, env := range map[string]string{"with colours": "LANG=C.UTF-8", "without": "NO_COLOR=1"} {
		t.Run(name, func(t *testing.T) {
			out, keyboard, end := session(t, t.Context(), oneLock(), env)
			out.until(t, "nightly")
			_, _ = io.WriteString(keyboard, "\r")
			out.until(t, "any key: back")
			_, _ = io.WriteString(keyboard, "x")
			_, _ = io.WriteString(keyboard, "q")
			if err := end(); err != nil {
				t.Error(err)
			}
			text := out.String()
			for _, want := range []string{"\x1b[?1049h", leftScreen, "\x1b[?25h"} {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not sent: %q", want, text)
				}
			}
			if strings.Index(text, leftScreen) < strings.LastIndex(text, "nightly") {
				t.Error("something is drawn after the screen was left")
			}
			if red := strings.Contains(text, "\x1b[31m"); red == (env == "NO_COLOR=1") {
				t.Errorf("%s: red is %v: %q", env, red, text)
			}
		})
	}
}

// A signal, or --timeout, ends the screen like q, and is the exit code's reason.
func TestTheEndOfTheContextLeavesTheScreen(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	out, _, end := session(t, ctx, oneLock())
	out.until(t, "nightly")
	cancel(&fail.TimeoutError{After: time.Second})
	if err := end(); !strings.Contains(errText(err), "timed out") {
		t.Errorf("the screen ends with %v", err)
	}
	if text := out.String(); !strings.Contains(text, leftScreen) {
		t.Errorf("%q", text)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A hung account delays neither keys nor the end.
func TestAnAccountThatDoesNotAnswerDoesNotHoldTheScreen(t *testing.T) {
	view := viewOf(Source{"locks in jobs", func(ctx context.Context) ([]Row, error) { <-ctx.Done(); return nil, ctx.Err() }})
	out, keyboard, end := session(t, t.Context(), view)
	out.until(t, "asking the service")
	_, _ = io.WriteString(keyboard, "s")
	out.until(t, "longest held first")
	_, _ = io.WriteString(keyboard, "q")
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestOnlyATerminalOnBothSidesGetsAScreen(t *testing.T) {
	for _, c := range []struct {
		in, out bool
		term    string
		json    bool
		want    bool
	}{
		{true, true, "xterm", false, true},
		{false, true, "xterm", false, false},
		{true, false, "xterm", false, false},
		{true, true, "dumb", false, false},
		{true, true, "xterm", true, false},
	} {
		f := cli.NewFactory(&cli.Streams{InTerminal: c.in, OutTerminal: c.out}, cli.Env{"TERM=" + c.term})
		cmd := &cobra.Command{Use: "planted"}
		f.AddFlags(cmd)
		if c.json {
			if err := cmd.ParseFlags([]string{"-o", "json"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Begin(cmd, nil); err != nil {
			t.Fatal(err)
		}
		if got := onScreen(f); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
