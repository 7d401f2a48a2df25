package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// change makes the new content from the old. It is run once per attempt and must not depend on earlier runs.
type change interface {
	apply(ctx context.Context, base baseContent) ([]byte, error)
}

type baseContent struct {
	Resource string
	Exists   bool
	ETag     string
	Attempt  int
	Data     []byte
}

// changeFlags are the four ways to say what to change; exactly one is given.
type changeFlags struct {
	Exec string
	JQ   string
	Set  []string
	File string

	properties bool // set an entity's properties, not members of a document
}

func (c *changeFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.Exec, "exec", "", "shell `command` that reads the content and writes the new one")
	f.StringVar(&c.JQ, "jq", "", "jq `expression` for a JSON document; exactly one result")
	f.StringArrayVar(&c.Set, "set", nil, "`path=value` to set in a JSON document, such as a.b=1; may be repeated")
	f.StringVarP(&c.File, "file", "f", "", "`file` with the new content; - is stdin")
}

// parse checks what can be checked without the content.
func (c *changeFlags) parse(env Env) (change, error) {
	var given []string
	for _, g := range []struct {
		name string
		set  bool
	}{{"--exec", c.Exec != ""}, {"--jq", c.JQ != ""}, {"--set", len(c.Set) > 0}, {"--file", c.File != ""}} {
		if g.set {
			given = append(given, g.name)
		}
	}
	switch len(given) {
	case 0:
		return nil, withHint(usagef("no change is given"), "give one of --exec, --jq, --set, --file")
	case 1:
	default:
		return nil, withHint(usagef("%s cannot be given together", strings.Join(given, " and ")), "only one of them can define the new content")
	}
	switch {
	case c.Exec != "":
		return &execChange{command: c.Exec, env: env}, nil
	case c.JQ != "":
		return newJQChange(c.JQ, env)
	case len(c.Set) > 0 && c.properties:
		return newSetProperties(c.Set)
	case len(c.Set) > 0:
		return newSetChange(c.Set)
	default:
		return &fileChange{name: c.File}, nil
	}
}

// prepare gets ready what a change needs once, before the first attempt.
func prepare(ctx context.Context, f *Factory, c change) error {
	switch c := c.(type) {
	case *fileChange:
		return c.load(ctx, f)
	case *execChange:
		c.stderr = f.Err
	}
	return nil
}

// filterError is a change that could not be made from the content. Nothing was written.
type filterError struct {
	what   string
	status int
	stderr string
	err    error
}

func (e *filterError) Error() string {
	if e.err == nil {
		return e.what + ": nothing was written"
	}
	return fmt.Sprintf("%s: %s: nothing was written", e.what, oneLine(e.err.Error()))
}

func (e *filterError) Unwrap() error    { return e.err }
func (e *filterError) verdict() verdict { return verdict{exitFilter, "filter_failed"} }

func (e *filterError) facts() map[string]any {
	out := map[string]any{}
	if e.status != 0 {
		out["filter_status"] = e.status
	}
	if e.stderr != "" {
		out["filter_stderr"] = e.stderr
	}
	return out
}

// fileChange is the content of a file, whatever was there.
type fileChange struct {
	name string
	data []byte
}

func (c *fileChange) load(ctx context.Context, f *Factory) error {
	r, _, err := f.openContent(ctx, c.name)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	c.data, err = io.ReadAll(r)
	return err
}

func (c *fileChange) apply(context.Context, baseContent) ([]byte, error) {
	return bytes.Clone(c.data), nil
}

// decodeJSON reads one JSON value, keeping numbers to the last digit.
func decodeJSON(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, &filterError{what: "the content is not JSON", err: err}
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, &filterError{what: "the content is more than one JSON value"}
	}
	return v, nil
}
