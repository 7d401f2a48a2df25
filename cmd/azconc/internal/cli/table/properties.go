package table

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
)

// entityFlags say what an entity's properties are: a JSON document or name=value pairs, or both, the pairs on top.
type entityFlags struct {
	File string
	Set  []string
}

func (e *entityFlags) add(set *pflag.FlagSet) {
	set.StringVarP(&e.File, "file", "f", "", "`file` with the properties as JSON; - is stdin")
	set.StringArrayVar(&e.Set, "set", nil, "`name=value` to set, the value as JSON or else as text; may be repeated")
}

// parse reads the name of the entity, and checks what can be checked without reading the file.
func (e *entityFlags) parse(arg string) (on ref.Table, err error) {
	if on, err = ref.ParseTable(arg, 3); err != nil {
		return on, err
	}
	if e.File == "" && len(e.Set) == 0 {
		return on, fail.WithHint(fail.Usagef("no properties are given"), "give --file or --set, or both")
	}
	if len(e.Set) > 0 {
		_, err = change.NewSetProperties(e.Set)
	}
	return on, err
}

// document returns the properties of on given by flags, as JSON.
func (e *entityFlags) document(ctx context.Context, f *cli.Factory, on ref.Table) ([]byte, error) {
	data, err := []byte("{}"), error(nil)
	if e.File != "" {
		if data, err = f.WholeFile(ctx, e.File); err != nil {
			return nil, err
		}
	}
	if len(e.Set) > 0 {
		set, err := change.NewSetProperties(e.Set)
		if err != nil {
			return nil, err
		}
		if data, err = set.Apply(ctx, change.BaseContent{Exists: true, Data: data}); err != nil {
			return nil, fail.BadDocument(err)
		}
	}
	return data, fail.BadDocument(checkKeys(on, data))
}

// ParseProperties reads properties as JSON.
func ParseProperties(data []byte) (tables.Properties, error) {
	var p tables.Properties
	if err := json.Unmarshal(bytes.TrimSpace(data), &p); err != nil {
		err = cmp.Or(fail.ByteOrderMark(data), err)
		if name := (*json.UnmarshalTypeError)(nil); errors.As(err, &name) {
			err = errors.New(fail.PlainJSON(err))
		}
		return nil, fail.WithHint(&fail.FilterError{What: "the properties are not an entity's", Err: err},
			`a property is a text, a number, true or false; a member "name@odata.type" beside it gives it another type, such as Edm.Int64`)
	}
	for _, own := range []string{optimistic.LineageKey, optimistic.OperationsKey} {
		if _, there := p[own]; there {
			return nil, &fail.FilterError{What: "property " + own + " is reserved for azconc"}
		}
	}
	return p, nil
}

// entityResult is an entity that was read.
type entityResult struct {
	Outcome   string            `json:"outcome"`
	Resource  string            `json:"resource"`
	Partition string            `json:"partition_key"`
	Row       string            `json:"row_key"`
	ETag      string            `json:"etag"`
	Entity    tables.Properties `json:"entity"`
}

func (r entityResult) Text(w io.Writer) {
	data, err := json.MarshalIndent(r.Entity, "", "  ")
	if err != nil {
		data = fmt.Appendf(nil, "{} (%v)", err)
	}
	fmt.Fprintf(w, "%s\n", data)
}

// flat returns the entity as one object, its keys and its ETag before its properties.
func (r entityResult) flat() (json.RawMessage, error) {
	properties, err := json.Marshal(r.Entity)
	if err != nil {
		return nil, err
	}
	keys, err := json.Marshal(map[string]string{"PartitionKey": r.Partition, "RowKey": r.Row, "odata.etag": r.ETag})
	if err != nil {
		return nil, err
	}
	keys = keys[:len(keys)-1]
	if len(properties) > len("{}") {
		keys = append(keys, ',')
	}
	return append(keys, properties[1:]...), nil
}

// TableRow has the properties as columns, without their types.
func (r entityResult) TableRow() map[string]any {
	row := map[string]any{"PartitionKey": r.Partition, "RowKey": r.Row, "odata.etag": r.ETag}
	var properties map[string]json.RawMessage
	if data, err := json.Marshal(r.Entity); err == nil && json.Unmarshal(data, &properties) == nil {
		for name, value := range properties {
			if !strings.HasSuffix(name, "@odata.type") {
				row[name] = value
			}
		}
	}
	return row
}

// addIfMatch adds the flag --if-match of a verb that needs it: last writer wins has to be asked for.
func addIfMatch(set *pflag.FlagSet, to *azcore.ETag) {
	flags.Text(set, to, "if-match", "the `ETag` that it must have; '*': any version, last writer wins", parseETag)
	flags.Required(set, "if-match", "give the ETag that you read; '*' accepts any version: last writer wins")
}

var tableETag = regexp.MustCompile(`^W/"[ -~]+"$`)

// parseETag reads an ETag of a table, which is weak and used as it was given.
func parseETag(s string) (azcore.ETag, error) {
	s = strings.TrimSpace(s)
	switch {
	case s == "", s == "*", tableETag.MatchString(s):
		return azcore.ETag(s), nil
	}
	return "", fail.WithHint(fail.Usagef("--if-match %s is not a table's ETag", s), `it looks like W/"datetime'2026-01-31T12%3A00%3A05.1234567Z'", as azconc table get -o json prints it`)
}

// exists is the hint for an entity that already exists.
func exists(err error) error {
	if errors.Is(err, optimistic.ErrExists) {
		return fail.WithHint(err, "azconc table update changes it; azconc table upsert replaces it, last writer wins")
	}
	return err
}
