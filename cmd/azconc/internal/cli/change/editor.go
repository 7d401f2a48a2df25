package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// Editor returns the user's editor, as a shell command. Without a terminal there is no default.
func Editor(f *cli.Factory) (string, error) {
	editor := cmp.Or(f.Env.Get("VISUAL"), f.Env.Get("EDITOR"))
	if editor == "" && !f.OutTerminal && !f.ErrTerminal {
		return "", fail.WithHint(fail.Usagef("there is no terminal for an editor"), "set VISUAL or EDITOR to a command that needs no terminal, or see azconc blob update")
	}
	return cmp.Or(editor, "vi"), nil
}

// Edit opens the user's editor on a file. The editor is not stopped when ctx ends, which would lose unsaved text. SIGINT goes
// to the editor too, which decides how to handle it.
func Edit(f *cli.Factory, file string) error {
	editor, err := Editor(f)
	if err != nil {
		return err
	}
	out := f.Terminal
	if !f.OutTerminal && !f.ErrTerminal {
		out = &show.PlainWriter{W: f.Err}
	}
	cmd := exec.Command("sh", "-c", editor+` "$1"`, editor, file)
	if stdin, ok := f.In.(*os.File); ok {
		cmd.Stdin = stdin // os/exec would read ahead from anything else, and consume the answers to later questions
	}
	cmd.Stdout, cmd.Stderr, cmd.Env = out, out, f.Env
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("the editor ended with status %d", exit.ExitCode())
	}
	return err
}

// TempCopy writes content to a file that only its owner can read, with the blob's extension, so that the editor knows
// the language.
func TempCopy(name string, content []byte) (string, error) {
	base := strings.Map(func(r rune) rune {
		if r == '*' || r == '/' || r == '\\' || r < ' ' {
			return '_'
		}
		return r
	}, path.Base(name))
	if len(base) > 80 {
		base = path.Ext(base)
	}
	file, err := os.CreateTemp("", "azconc-*-"+base)
	if err != nil {
		return "", err
	}
	if _, err := file.Write(content); err != nil {
		_ = file.Close()
		return file.Name(), err
	}
	return file.Name(), file.Close()
}

// Ask prints a question and returns the first letter of the answer that is one of choices. It reads no more than a line,
// because what follows may be for an editor.
func Ask(f *cli.Factory, ctx context.Context, question, choices string) (byte, error) {
	for {
		fmt.Fprint(f.Err, "azconc: "+question+" ")
		f.Redactor.Flush()
		answer := make(chan string, 1)
		failed := make(chan error, 1)
		go func() {
			line, err := readLine(f.In)
			if err != nil {
				failed <- err
				return
			}
			answer <- line
		}()
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case err := <-failed:
			return 0, err
		case line := <-answer:
			line = strings.ToLower(strings.TrimSpace(line))
			if line != "" && strings.IndexByte(choices, line[0]) >= 0 {
				return line[0], nil
			}
		}
	}
}

func readLine(r io.Reader) (string, error) {
	var line []byte
	var one [1]byte
	for {
		n, err := r.Read(one[:])
		if n == 1 {
			if one[0] == '\n' {
				return string(line), nil
			}
			line = append(line, one[0])
		}
		if err != nil {
			return "", err
		}
	}
}
