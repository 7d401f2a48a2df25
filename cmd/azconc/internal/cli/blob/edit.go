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
	"github.com/azconc/azconc/optimistic/blobs"
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
	var maxSize int64
	set.BoolVar(&e.create, "create", false, "start with an empty text if the blob does not exist")
	flags.AddMaxSize(set, &maxSize)
	flags.WriteConditions(set, &e.conditions, flags.CondAll)
	parse := func(arg string) (on ref.Blob, err error) {
		if e.on, err = ref.ParseWritable(arg); err != nil {
			return e.on, err
		}
		return e.on, creates(e.create, e.conditions)
	}
	return cli.On(f, cmd, parse, f.BlockBlob, func(ctx context.Context, on ref.Blob, client *blockblob.Client) (_ cli.Result, err error) {
		if _, err := editor(f); err != nil {
			return nil, err
		}
		e.create = e.create || e.conditions.IfNoneMatch == azcore.ETagAny
		e.target = contentOf(client, on.Blob, flags.Headers{})
		e.target.MaxSize = maxSize
		if e.base, err = e.read(ctx); err != nil {
			return nil, flags.MaxSizeHint(err)
		}
		e.current = e.base.ETag
		if err := e.conditions.Check("edit", on.String(), e.base.State); err != nil {
			return nil, err
		}
		if e.file, err = tempCopy(on.Blob, e.base.Value); err != nil {
			return nil, err
		}
		return e.finish(e.run(ctx))
	})
}

// editing is the editing of a blob: the version that the text in file is based on, and the text.
type editing struct {
	f          *cli.Factory
	on         ref.Blob
	create     bool
	conditions optimistic.Conditions
	target     blobs.Blob[[]byte]
	base       *optimistic.Version[[]byte]
	current    azcore.ETag // of the version that is there, as far as is known
	file       string
	mine       []byte
	total      optimistic.Result
}

// finish returns the result of an edit, and removes the file unless its text was not written.
func (e *editing) finish(outcome string, err error) (cli.Result, error) {
	if err != nil {
		return nil, e.keep(fail.Tally(err, e.total))
	}
	if err := os.Remove(e.file); err != nil {
		e.f.Notef("the temporary file was not removed: %v", err)
	}
	r := cli.NewWriteResult(e.on, outcome, e.total)
	if !e.total.Created {
		r.Outcome = outcome
	}
	return r, nil
}

// read is optimistic.Read, but with --create a missing blob is an empty version.
func (e *editing) read(ctx context.Context) (*optimistic.Version[[]byte], error) {
	v, err := optimistic.Read(ctx, e.target, nil)
	if errors.Is(err, optimistic.ErrNotFound) && e.create {
		return &optimistic.Version[[]byte]{}, nil
	}
	if v != nil {
		e.total.Requests++
	}
	return v, err
}

func (e *editing) run(ctx context.Context) (outcome string, err error) {
	outcome, err = e.open(ctx)
	for outcome == "" && err == nil {
		err := e.write(ctx)
		if err == nil {
			return "updated", nil
		}
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		if !ok {
			return "", err
		}
		if conflict.Current != "" || conflict.Reason == azerr.Gone {
			e.current = conflict.Current
		}
		pinned := e.conditions.IfMatch != "" && e.conditions.IfMatch != azcore.ETagAny
		if pinned || conflict.Base != "" && conflict.Base == conflict.Current {
			return "", err
		}
		if outcome, err = e.reconcile(ctx, conflict); err != nil {
			return "", err
		}
	}
	return outcome, err
}

// open runs the editor, and returns "cancelled" if the text has not changed.
func (e *editing) open(ctx context.Context) (outcome string, err error) {
	if err := runEditor(e.f, e.file); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", context.Cause(ctx)
	}
	if e.mine, err = os.ReadFile(e.file); err != nil {
		return "", err
	}
	if bytes.Equal(e.mine, e.base.Value) {
		return "cancelled", nil
	}
	return "", nil
}

func (e *editing) write(ctx context.Context) error {
	c := e.conditions
	o := &optimistic.WriteOptions{Conditions: optimistic.Conditions{IfTags: c.IfTags, LeaseID: c.LeaseID}}
	// After a conflict the stored text is read and compared with the user's.
	o.ConfirmConflicts, o.Hooks = optimistic.ConfirmNever, e.f.Monitor.Hooks()
	var r optimistic.Result
	var err error
	if e.base.Exists {
		r, err = optimistic.Replace(ctx, e.target, e.base, e.mine, o)
	} else {
		r, err = optimistic.Create(ctx, e.target, e.mine, o)
	}
	t := &e.total
	t.Changed, t.Created, t.ETag, t.BaseETag = r.Changed, r.Created, r.ETag, r.BaseETag
	t.Attempts, t.Conflicts, t.Ambiguous = t.Attempts+r.Attempts, t.Conflicts+r.Conflicts, t.Ambiguous+r.Ambiguous
	t.Resolved, t.Requests, t.Elapsed = t.Resolved+r.Resolved, t.Requests+r.Requests, t.Elapsed+r.Elapsed
	return err
}

// reconcile shows what another writer has changed, and lets the user change the text, which may then replace that version.
func (e *editing) reconcile(ctx context.Context, conflict error) (outcome string, err error) {
	f := e.f
	theirs, err := e.read(ctx)
	if err != nil {
		return "", err
	}
	if bytes.Equal(theirs.Value, e.mine) && theirs.Exists {
		f.Notef("another writer has written the same text")
		e.total.ETag = theirs.ETag
		return "unchanged", nil
	}
	f.Notef("another writer has changed the blob (etag %s); your text is in %s", cmp.Or(theirs.ETag, "none"), e.file)
	_, _ = io.WriteString(f.Err, change.Diff("before", "theirs", e.base.Value, theirs.Value))
	e.base, e.current = theirs, theirs.ETag
	again := false
	if f.InTerminal && f.ErrTerminal {
		again, err = f.Confirmed(ctx, "open your text again, to write it over theirs? yes or no: ")
	}
	if !again {
		return "", errors.Join(conflict, err)
	}
	return e.open(ctx)
}

// keep adds to err the file with the text, and the command that overwrites the current version with it.
func (e *editing) keep(err error) error {
	command := fmt.Sprintf("azconc blob update %s --file %s", show.Quote(e.on.String()), show.Quote(e.file))
	if e.current == "" {
		command += " --create"
	} else {
		command += " --if-match " + show.Quote(string(e.current))
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

// runEditor opens the user's editor on a file. The editor is not stopped when the command is, which would lose unsaved text. SIGINT
// goes to the editor too, which decides how to handle it.
func runEditor(f *cli.Factory, file string) error {
	command, err := editor(f)
	if err != nil {
		return err
	}
	cmd := exec.Command("sh", "-c", command+` "$1"`, command, file)
	if stdin, ok := f.In.(*os.File); ok {
		cmd.Stdin = stdin // os/exec would read ahead from anything else, and consume the answers to later questions
	}
	cmd.Stdout, cmd.Stderr, cmd.Env = f.Terminal, f.Terminal, f.Env
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("the editor ended with status %d", exit.ExitCode())
	}
	return err
}

// tempCopy writes content to a file that only its owner can read, with the blob's extension, so that the editor knows the language.
func tempCopy(name string, content []byte) (string, error) {
	extension := strings.Map(func(r rune) rune {
		if r == '*' || r == '/' || r == '\\' || r < ' ' {
			return '_'
		}
		return r
	}, path.Ext(name))
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
