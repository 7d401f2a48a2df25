package table

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic/tables"
)

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
	if err := json.Unmarshal(data, &members); err != nil {
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
	p, err := parseChanged(was, data, len(e.Set) > 0)
	return p, fail.BadDocument(err)
}

// typesHint adds the way to merge without permission to read.
func typesHint(err error) error {
	return fail.WithHint(fmt.Errorf("read the types of the stored properties: %w", err),
		`with the types given, nothing is read: --set 'n@odata.type=Edm.Double' --set n=2`)
}
