// Package change makes new content from old: by a command, a jq expression, assignments, a file, or an editor.
package change

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/monitor"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
)

// Change makes the new content from the old. It is run once per attempt and must not depend on earlier runs.
type Change interface {
	Apply(ctx context.Context, base BaseContent) ([]byte, error)
}

type BaseContent struct {
	Resource string
	Exists   bool
	ETag     string
	Attempt  int
	Data     []byte
}

// ChangeFlags are the four flags that specify a change. Exactly one is given.
type ChangeFlags struct {
	Exec string
	JQ   string
	Set  []string
	File string

	AllowEmpty bool // of --exec

	Properties bool // set an entity's properties, not members of a document
}

func (c *ChangeFlags) Add(set *pflag.FlagSet) {
	set.StringVar(&c.Exec, "exec", "", "shell `command` that reads the content and writes the new one")
	set.StringVar(&c.JQ, "jq", "", "jq `expression` for a JSON document; exactly one result")
	set.StringArrayVar(&c.Set, "set", nil, "`path=value` to set in a JSON document, such as a.b=1; may be repeated")
	set.StringVarP(&c.File, "file", "f", "", "`file` with the new content; - is stdin")
	if !c.Properties { // an empty text is no entity
		set.BoolVar(&c.AllowEmpty, "allow-empty", false, "with --exec, replace content by an empty output")
	}
}

// Parse checks what can be checked without the content.
func (c *ChangeFlags) Parse(env cli.Env) (Change, error) {
	var given []string
	var change Change
	var err error
	if c.Exec != "" {
		given, change = append(given, "--exec"), &Exec{command: c.Exec, env: env, allowEmpty: c.AllowEmpty}
	}
	if c.JQ != "" {
		given = append(given, "--jq")
		change, err = newJQChange(c.JQ, env)
	}
	if len(c.Set) > 0 {
		given = append(given, "--set")
		if c.Properties {
			change, err = NewSetProperties(c.Set)
		} else {
			change, err = newSetChange(c.Set)
		}
	}
	if c.File != "" {
		given, change = append(given, "--file"), &FileChange{Name: c.File}
	}
	switch {
	case len(given) == 0:
		return nil, fail.WithHint(fail.Usagef("no change is given"), "give one of --exec, --jq, --set, --file")
	case len(given) > 1:
		return nil, fail.WithHint(fail.Usagef("%s cannot be given together", strings.Join(given, " and ")), "only one of them can define the new content")
	case c.AllowEmpty && c.Exec == "":
		return nil, fail.Usagef("--allow-empty applies to the output of --exec")
	}
	return change, err
}

// Prepare loads what a change needs, once, before the first attempt.
func Prepare(ctx context.Context, f *cli.Factory, c Change) (err error) {
	switch c := c.(type) {
	case *FileChange:
		c.Data, err = f.WholeFile(ctx, c.Name)
	case *Exec:
		c.stderr = f.Err
	}
	return err
}

// FileChange replaces any content by the content of a file.
type FileChange struct {
	Name string
	Data []byte
}

func (c *FileChange) Apply(context.Context, BaseContent) ([]byte, error) {
	return bytes.Clone(c.Data), nil
}

// Exec pipes the content through a shell command.
type Exec struct {
	command    string
	env        cli.Env
	stderr     io.Writer
	allowEmpty bool
}

// filterGrace is the time between TERM and KILL for a filter.
const filterGrace = 2 * time.Second

func (c *Exec) Apply(ctx context.Context, base BaseContent) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(len(base.Data) + bytes.MinRead)
	if err := c.Run(ctx, base, bytes.NewReader(base.Data), &out); err != nil {
		return nil, err
	}
	return out.Bytes(), c.Check(int64(len(base.Data)), int64(out.Len()))
}

// Run runs the command on base without its Data: it reads from, and prints to to. A file is read and written by the command
// itself, without the memory of its content.
func (c *Exec) Run(ctx context.Context, base BaseContent, from io.Reader, to io.Writer) error {
	command := &proc.Shell{
		Line: c.command, What: "the filter", Stdin: from, Stdout: to, Stderr: c.stderr,
		Env: append(monitor.Environ(ctx, c.env),
			"AZCONC_RESOURCE="+base.Resource, "AZCONC_ETAG="+base.ETag, "AZCONC_ATTEMPT="+strconv.Itoa(base.Attempt)),
		Grace: func(error) time.Duration { return filterGrace },
	}
	end, err := command.Run(ctx)
	failed := &fail.FilterError{What: end.Failure(true), Status: end.Code, Stderr: end.Said}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return &fail.FilterError{What: "the filter could not be run", Err: err}
	case failed.What != "":
		return failed
	}
	return nil
}

// Check refuses that a command which has succeeded made content of some length empty, unless that is allowed.
func (c *Exec) Check(before, after int64) error {
	if after > 0 || before == 0 || c.allowEmpty {
		return nil
	}
	return fail.WithHint(&fail.FilterError{What: "the filter succeeded and printed nothing"},
		"the status of a pipeline is that of its last command; to make the content empty, give --allow-empty")
}

// validJSON refuses what is not one JSON value, without the memory of its values.
func validJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(new(json.RawMessage)); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return &fail.FilterError{What: "the content is not JSON", Err: cmp.Or(fail.NotUTF8(data), err)}
	}
	if _, err := d.Token(); err != io.EOF {
		return &fail.FilterError{What: "the content is more than one JSON value"}
	}
	return nil
}
