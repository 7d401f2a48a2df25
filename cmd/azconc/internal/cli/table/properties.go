package table

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
)

// entityFlags say what an entity's properties are: a JSON document or name=value pairs, or both, the pairs on top.
type entityFlags struct {
	File  string
	Set   []string
	pairs *change.SetChange // of Set
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
	e.pairs, err = change.NewSetProperties(e.Set)
	return on, err
}

// document returns the properties of on given by flags, as JSON.
func (e *entityFlags) document(ctx context.Context, f *cli.Factory, on ref.Table) (data []byte, err error) {
	if e.File != "" {
		if data, err = f.WholeFile(ctx, e.File); err != nil {
			return nil, err
		}
	}
	if len(e.Set) > 0 {
		if data, err = e.pairs.Apply(ctx, change.BaseContent{Exists: e.File != "", Data: data}); err != nil {
			return nil, fail.BadDocument(err)
		}
	}
	return data, fail.BadDocument(checkKeys(on, data))
}

// ParseProperties reads properties as JSON.
func ParseProperties(data []byte) (tables.Properties, error) {
	var p tables.Properties
	if err := cmp.Or(fail.NotUTF8(data), json.Unmarshal(bytes.TrimSpace(data), &p)); err != nil {
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

func (r entityResult) Text(w io.Writer) { show.JSON(w, r.Entity) }

// flat returns the entity as one object: its keys, its ETag and its properties.
func (r entityResult) flat() map[string]any {
	object := map[string]any{}
	if data, err := json.Marshal(r.Entity); err == nil {
		var properties map[string]json.RawMessage
		_ = json.Unmarshal(data, &properties) // it is an object
		for name, value := range properties {
			object[name] = value
		}
	}
	object["PartitionKey"], object["RowKey"], object["odata.etag"] = r.Partition, r.Row, r.ETag
	return object
}

// TableRow has the properties as columns, without their types.
func (r entityResult) TableRow() map[string]any {
	row := r.flat()
	maps.DeleteFunc(row, func(name string, _ any) bool { return strings.HasSuffix(name, change.TypeSuffix) })
	return row
}

// addIfMatch adds the flag --if-match of a verb that needs it: last writer wins has to be asked for.
func addIfMatch(set *pflag.FlagSet, to *azcore.ETag) {
	flags.Text(set, to, "if-match", "the `ETag` that it must have; '*': any version, last writer wins", parseETag)
	flags.Required(set, "if-match", "give the ETag that you read; '*' accepts any version: last writer wins")
}

func parseETag(text string) (azcore.ETag, error) { return flags.ParseTableETag("--if-match", text) }

// EntityText is an entity's properties as the JSON document that a change starts from. Int64 are strings in it, as the
// service writes them, since most programs would round them; numbers makes them numbers, for a change that does not.
func EntityText(p tables.Properties, numbers bool) ([]byte, error) {
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil || !numbers {
		return data, err
	}
	for name, property := range p {
		if property.Type != tables.EDMInt64 {
			continue
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		line := fmt.Sprintf("  %s: ", key) // no value of a property spans lines
		data = bytes.Replace(data, []byte(line+`"`+property.Value+`"`), []byte(line+property.Value), 1)
	}
	return data, nil
}

// parseChanged reads the changed document of an entity that held was. A property that was there keeps its type as far as
// the new value is one of it: a Double stays a Double when it becomes a whole number. An "@odata.type" that is not the
// stored one wins. With text, which is for values given on the command line, a string stays a string, too.
func parseChanged(was tables.Properties, data []byte, text bool) (tables.Properties, error) {
	var members map[string]json.RawMessage
	if fail.NotUTF8(data) != nil || json.Unmarshal(data, &members) != nil {
		return ParseProperties(data) // which reports the error
	}
	for name, old := range was {
		raw, there := members[name]
		if _, typed := members[name+change.TypeSuffix]; !there || typed {
			continue
		}
		if text && old.Type == tables.EDMString && raw[0] != '"' && raw[0] != 'n' {
			members[name], _ = json.Marshal(string(raw))
			continue
		}
		if fits(raw, old.Type) {
			members[name+change.TypeSuffix], _ = json.Marshal(old.Type)
		}
	}
	data, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	return ParseProperties(data)
}

// checkKeys refuses properties that name another entity than on by their PartitionKey and RowKey. A query prints the keys
// among the properties, so that those of on are allowed.
func checkKeys(on ref.Table, data []byte) error {
	var members map[string]any
	if json.Unmarshal(data, &members) != nil {
		return nil // which is reported when the properties are parsed
	}
	for _, key := range []struct{ name, want string }{{"PartitionKey", on.Partition}, {"RowKey", on.Row}} {
		if given, there := members[key.name]; there && given != key.want {
			return fail.WithHint(&fail.FilterError{What: fmt.Sprintf("the properties have the %s \"%v\", and the keys of an entity cannot change", key.name, given)},
				"omit it; azconc table insert creates an entity under other keys, azconc table delete-entity deletes this one")
		}
	}
	return nil
}

// fits tells whether a literal is a value of type t. A number is no text, whatever the type allows.
func fits(raw json.RawMessage, t tables.EDM) bool {
	kind, err := json.Marshal(t)
	if err != nil || t == tables.EDMDouble && raw[0] == '"' {
		return false
	}
	var p tables.Properties
	return json.Unmarshal([]byte(`{"p`+change.TypeSuffix+`":`+string(kind)+`,"p":`+string(raw)+`}`), &p) == nil
}

// untyped reports whether the document has a value whose type depends on the stored entity.
func untyped(data []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return false
	}
	for name, raw := range members {
		_, typed := members[name+change.TypeSuffix]
		if !typed && !strings.HasSuffix(name, change.TypeSuffix) && len(raw) > 0 && strings.IndexByte(`"-0123456789`, raw[0]) >= 0 {
			return true
		}
	}
	return false
}

// load returns the given properties of on. Those whose type the document leaves open have it from what stored returns, unless that is
// nil, which costs a request.
func (e *entityFlags) load(ctx context.Context, f *cli.Factory, on ref.Table, stored func() (tables.Properties, error)) (tables.Properties, error) {
	data, err := e.document(ctx, f, on)
	if err != nil {
		return nil, err
	}
	var was tables.Properties
	if stored != nil && untyped(data) {
		if was, err = stored(); err != nil {
			return nil, err
		}
	}
	return e.properties(data, was)
}

// properties returns those of the given document. Those whose type it leaves open keep the one that they had in was.
func (e *entityFlags) properties(data []byte, was tables.Properties) (tables.Properties, error) {
	p, err := parseChanged(was, data, len(e.Set) > 0)
	return p, fail.BadDocument(err)
}

// typesHint adds the way to merge without permission to read.
func typesHint(err error) error {
	return fail.WithHint(fmt.Errorf("read the types of the stored properties: %w", err),
		`with the types given, nothing is read: --set 'n@odata.type=Edm.Double' --set n=2`)
}
