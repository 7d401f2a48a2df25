package blob

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

func newEditCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "edit <container/blob>",
		Short: "Edit a blob in your editor without losing concurrent changes",
		Long: `Edit a blob in $VISUAL or $EDITOR.

If another writer changes the blob meanwhile, nothing is written: azconc shows what the other writer changed, and on a terminal asks
whether to open your text again, which then replaces theirs. Otherwise it ends with exit code 4. Text that was not written stays in
its file, and azconc prints the command that writes it.`,
		Example: "  EDITOR='code --wait' azconc blob edit jobs/config.yaml",
	}
	set := cmd.Flags()
	e := &editing{f: f}
	o := optimistic.UpdateOptions{Attempts: -1, Elapsed: -1} // the user decides how often
	// After a conflict the stored text is read and compared with the user's.
	o.ConfirmConflicts = optimistic.ConfirmNever
	var maxSize int64
	set.BoolVar(&o.Create, "create", false, "start with an empty text if the blob does not exist")
	flags.AddMaxSize(set, &maxSize)
	flags.WriteConditions(set, &o.Conditions, flags.CondAll)
	parse := cli.Checked(ref.ParseWritable, func() error { return creates(o.Create, o.Conditions) })
	return cli.On(f, cmd, parse, f.BlockBlob, func(ctx context.Context, on ref.Blob, client *blockblob.Client) (cli.Result, error) {
		var err error
		if e.editor, err = editor(f); err != nil {
			return nil, err
		}
		o.Create = o.Create || o.Conditions.IfNoneMatch == azcore.ETagAny
		o.Hooks = f.Monitor.Hooks()
		target := contentOf(client, on.Blob, flags.Headers{})
		target.MaxSize = maxSize
		e.on, e.conditions = on, o.Conditions
		r, err := optimistic.Update(ctx, target, e.change, &o)
		if err != nil {
			return nil, e.keep(fail.Tally(flags.MaxSizeHint(err), r))
		}
		if err := os.Remove(e.file); err != nil {
			f.Notef("the temporary file was not removed: %v", err)
		}
		out := cli.NewWriteResult(on, "updated", r)
		if e.cancelled {
			out.Outcome = "cancelled"
		}
		return out, nil
	})
}

// editing is the editing of a blob: the version that the text in file is based on, and the text.
type editing struct {
	f          *cli.Factory
	on         ref.Blob
	conditions optimistic.Conditions
	before     []byte
	base       azcore.ETag // of before
	editor     string      // a shell command
	file       string
	mine       []byte
	cancelled  bool // the text has not changed
}

// change has the user change the content, which is that of another version when it is not called for the first time.
func (e *editing) change(ctx context.Context, content *[]byte) (err error) {
	base := optimistic.BaseOf(ctx)
	if optimistic.EarlierRuns(ctx) == 0 {
		if err := e.conditions.Check("edit", e.on.String(), base); err != nil {
			return err
		}
		e.file, err = tempCopy(e.on.Blob, *content)
	} else {
		if bytes.Equal(*content, e.mine) && base.Exists {
			e.f.Notef("another writer has written the same text")
			return optimistic.ErrSkip
		}
		err = e.reconcile(ctx, *content, base.ETag)
	}
	if e.before, e.base = *content, base.ETag; err != nil {
		return err
	}
	if err := e.runEditor(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e.mine, err = os.ReadFile(e.file); err != nil {
		return err
	}
	if bytes.Equal(e.mine, *content) {
		e.cancelled = true
		return optimistic.ErrSkip
	}
	*content = e.mine
	return nil
}

// reconcile shows what another writer has changed, and asks whether the user's text may replace that. The error is a conflict if not.
func (e *editing) reconcile(ctx context.Context, theirs []byte, etag azcore.ETag) error {
	f := e.f
	f.Notef("another writer has changed the blob (etag %s); your text is in %s", cmp.Or(etag, "none"), e.file)
	_, _ = io.WriteString(f.Err, change.Diff("before", "theirs", e.before, theirs))
	again, err := false, error(nil)
	if f.InTerminal && f.ErrTerminal {
		again, err = f.Confirmed(ctx, "open your text again, to write it over theirs? yes or no: ")
	}
	if again {
		return nil
	}
	return errors.Join(&optimistic.ConflictError{Op: "edit", Resource: e.on.String(), Reason: azerr.Changed, Base: e.base, Current: etag}, err)
}

// keep adds to err the file with the text, if there is one, and the command that overwrites the current version with it.
func (e *editing) keep(err error) error {
	if e.file == "" {
		return err
	}
	current := e.base
	if conflict, ok := errors.AsType[*optimistic.ConflictError](err); ok && (conflict.Current != "" || conflict.Reason == azerr.Gone) {
		current = conflict.Current
	}
	command := fmt.Sprintf("azconc blob update %s --file %s", show.Quote(e.on.String()), show.Quote(e.file))
	if current == "" {
		command += " --create"
	} else {
		command += " --if-match " + show.Quote(string(current))
	}
	if c := e.conditions; c.LeaseID != "" {
		command += " --lease-id " + c.LeaseID
	}
	return fail.WithHint(fail.WithFacts(err, map[string]any{"file": e.file}), "your text is in "+e.file+"; to overwrite the current version with it: "+command)
}

// editor returns the user's editor, as a shell command. Without a terminal there is no default.
func editor(f *cli.Factory) (string, error) {
	command := cmp.Or(f.Env.Get("VISUAL"), f.Env.Get("EDITOR"))
	if command == "" && !f.OutTerminal && !f.ErrTerminal {
		return "", fail.WithHint(fail.Usagef("there is no terminal for an editor"), "set VISUAL or EDITOR to a command that needs no terminal, or see azconc blob update")
	}
	return cmp.Or(command, "vi"), nil
}

// runEditor opens the user's editor on the file. The editor is not stopped when the command is, which would lose unsaved text. SIGINT
// goes to the editor too, which decides how to handle it.
func (e *editing) runEditor() error {
	f := e.f
	cmd := exec.Command("sh", "-c", e.editor+` "$1"`, e.editor, e.file)
	if stdin, ok := f.In.(*os.File); ok {
		cmd.Stdin = stdin // os/exec would read ahead from anything else, and consume the answers to later questions
	}
	terminal := f.Redactor.W // an editor is no reader of lines
	if f.OutTerminal {
		terminal = f.Out
	}
	cmd.Stdout, cmd.Stderr, cmd.Env = terminal, terminal, f.Env
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("the editor ended with status %d", exit.ExitCode())
	}
	return err
}

// tempCopy writes content to a file that only its owner can read, with the blob's extension, so that the editor knows the language.
func tempCopy(name string, content []byte) (string, error) {
	extension := path.Ext(name)
	if strings.ContainsFunc(extension, func(r rune) bool { return r == '*' || r == '\\' || r < ' ' }) {
		extension = "" // no name of a file
	}
	file, err := os.CreateTemp("", "azconc-*"+extension)
	if err != nil {
		return "", err
	}
	if _, err := file.Write(content); err != nil {
		_ = file.Close()
		return file.Name(), err
	}
	return file.Name(), file.Close()
}
