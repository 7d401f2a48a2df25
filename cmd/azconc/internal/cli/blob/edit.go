package blob

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/pflag"

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

type editOptions struct {
	Blob       ref.Blob
	Create     bool
	MaxSize    int64
	Conditions optimistic.Conditions
}

func editVerb() cli.Verb[editOptions] {
	return cli.Verb[editOptions]{
		Use:   "edit <container/blob>",
		Short: "Edit a blob in your editor without losing concurrent changes",
		Long: `Edit a blob in $VISUAL or $EDITOR.

If another writer changes the blob meanwhile, nothing is written: azconc shows what the other writer changed, and on a terminal asks
whether to open your text again. Otherwise it ends with exit code 4. Text that was not written stays in its file, and azconc prints
the command that writes it.`,
		Example: "  EDITOR='code --wait' azconc blob edit jobs/config.yaml",
		Flags: func(opts *editOptions, set *pflag.FlagSet) {
			set.BoolVar(&opts.Create, "create", false, "start with an empty text if the blob does not exist")
			flags.AddMaxSize(set, &opts.MaxSize)
			flags.WriteConditions(set, &opts.Conditions, flags.CondAll)
		},
		Resource: func(opts *editOptions, arg string) (err error) { opts.Blob, err = ref.ParseWritable(arg); return err },
		Parse: func(opts *editOptions, _ cli.Input) error {
			if opts.Create && opts.Conditions.IfMatch != "" {
				return fail.WithHint(fail.Usagef("--create and --if-match cannot both be given"), "--if-match asks for a blob that exists")
			}
			if opts.Conditions.IfNoneMatch == azcore.ETagAny {
				opts.Create = true
			}
			return nil
		},
		Run: editRun,
	}
}

// editing is the editing of a blob: the version that the text in file is based on, and the text.
type editing struct {
	f      *cli.Factory
	opts   *editOptions
	target blobs.Blob[[]byte]
	base   *optimistic.Version[[]byte]
	file   string
	mine   []byte
	total  optimistic.Result
}

func editRun(ctx context.Context, f *cli.Factory, opts *editOptions) error {
	if _, err := change.Editor(f); err != nil {
		return err
	}
	client, err := f.BlockBlob(opts.Blob)
	if err != nil {
		return err
	}
	e := &editing{f: f, opts: opts, target: contentOf(client, opts.Blob.Blob, flags.Headers{})}
	e.target.MaxSize = opts.MaxSize
	if e.base, err = e.read(ctx); err != nil {
		return flags.MaxSizeHint(err)
	}
	if err := e.permitted(); err != nil {
		return err
	}
	if e.file, err = change.TempCopy(opts.Blob.Blob, e.base.Value); err != nil {
		return err
	}
	outcome, err := e.run(ctx)
	if err != nil {
		return e.keep(fail.Tally(err, e.total))
	}
	if outcome == "theirs" {
		f.Notef("their version stays; your text is in %s", e.file)
		outcome = "cancelled"
	} else if err := os.Remove(e.file); err != nil {
		f.Notef("the temporary file was not removed: %v", err)
	}
	r := cli.NewWriteResult(opts.Blob, outcome, e.total)
	if !e.total.Created {
		r.Outcome = outcome
	}
	return f.Print(r)
}

// read is optimistic.Read, but with --create a missing blob is an empty version.
func (e *editing) read(ctx context.Context) (*optimistic.Version[[]byte], error) {
	v, err := optimistic.Read(ctx, e.target, nil)
	if errors.Is(err, optimistic.ErrNotFound) && e.opts.Create {
		return &optimistic.Version[[]byte]{}, nil
	}
	if v != nil {
		e.total.Requests++
	}
	return v, err
}

func (e *editing) permitted() error {
	return e.opts.Conditions.Check("edit", e.opts.Blob.String(), e.base.State)
}

func (e *editing) run(ctx context.Context) (outcome string, err error) {
	if outcome, err = e.open(ctx); outcome != "" || err != nil {
		return outcome, err
	}
	for {
		err := e.write(ctx)
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		if err == nil {
			return "updated", nil
		}
		pinned := e.opts.Conditions.IfMatch != "" && e.opts.Conditions.IfMatch != azcore.ETagAny
		if !ok || pinned || conflict.Base != "" && conflict.Base == conflict.Current {
			return "", err
		}
		outcome, err := e.reconcile(ctx, conflict)
		if outcome != "" || err != nil {
			return outcome, err
		}
	}
}

// open runs the editor, and returns "cancelled" if the text has not changed.
func (e *editing) open(ctx context.Context) (outcome string, err error) {
	if err := change.Edit(e.f, e.file); err != nil {
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
	c := e.opts.Conditions
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

// reconcile shows what another writer has changed, and lets the user change the text. It sets base to the version that the text may
// then replace.
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
	answer := byte('a')
	if f.InTerminal && f.ErrTerminal {
		answer, err = change.Ask(f, ctx, "[e]dit your text again, write [m]ine over theirs, keep [t]heirs, [a]bort?", "emta")
	}
	switch answer {
	case 'e':
		e.base = theirs
		return e.open(ctx)
	case 'm':
		e.base = theirs
		return "", nil
	case 't':
		return "theirs", nil
	}
	return "", &keepTheirs{err: errors.Join(conflict, err), etag: theirs.ETag}
}

// keepTheirs is an unresolved conflict, with the version that the text would have to replace.
type keepTheirs struct {
	err  error
	etag azcore.ETag
}

func (e *keepTheirs) Error() string { return e.err.Error() }
func (e *keepTheirs) Unwrap() error { return e.err }

// keep adds to err the file with the text and, if the current version is known, the command that overwrites it.
func (e *editing) keep(err error) error {
	etag := e.base.ETag
	if k, ok := errors.AsType[*keepTheirs](err); ok {
		etag = k.etag
	} else if c, ok := errors.AsType[*optimistic.ConflictError](err); ok && (c.Current != "" || c.Reason == azerr.Gone) {
		etag = c.Current
	}
	command := fmt.Sprintf("azconc blob update %s --file %s", show.Quote(e.opts.Blob.String()), show.Quote(e.file))
	if etag == "" {
		command += " --create"
	} else {
		command += " --if-match " + show.Quote(string(etag))
	}
	if c := e.opts.Conditions; c.LeaseID != "" {
		command += " --lease-id " + c.LeaseID
	}
	return fail.WithHint(&keptError{err: err, file: e.file}, "your text is in "+e.file+"; to overwrite the current version with it: "+command)
}

// keptError is a failure after which the user's text remains in a file.
type keptError struct {
	err  error
	file string
}

func (e *keptError) Error() string { return e.err.Error() }
func (e *keptError) Unwrap() error { return e.err }

func (e *keptError) Facts() map[string]any { return map[string]any{"file": e.file} }
