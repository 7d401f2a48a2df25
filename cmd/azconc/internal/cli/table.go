package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

func newTableCmd(f *Factory) *cobra.Command {
	return newGroupCmd("table", "Read, write and change tables and their entities",
		newTableCreateCmd(f, nil),
		newTableDeleteCmd(f, nil),
		newTableListCmd(f, nil),
		newTableQueryCmd(f, nil),
		newTableGetCmd(f, nil),
		newTableInsertCmd(f, nil),
		newTableUpdateCmd(f, nil),
		newTableReplaceCmd(f, nil),
		newTableMergeCmd(f, nil),
		newTableUpsertCmd(f, nil),
		newTableDeleteEntityCmd(f, nil),
		newTableTransactCmd(f, nil),
		newTableLockCmd(f),
	)
}

// tableRef names a table, a partition of one, or an entity.
type tableRef struct {
	Table     string
	Partition string
	Row       string
}

func (r tableRef) String() string {
	return strings.TrimRight(r.Table+"/"+r.Partition+"/"+r.Row, "/")
}

var tableName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{2,62}$`)

// parseTableRef reads table[/partition[/row]], of which exactly parts must be there. Keys cannot hold a slash: the
// service forbids it.
func parseTableRef(arg string, parts int) (tableRef, error) {
	words := strings.Split(arg, "/")
	shape := []string{"table", "table/partition", "table/partition/row"}[parts-1]
	r := tableRef{Table: words[0]}
	if !tableName.MatchString(r.Table) {
		return r, withHint(usagef("%q is not a table's name", r.Table), "a name is 3 to 63 letters and digits, a letter first")
	}
	if len(words) != parts {
		return r, usagef("%q is not of the form %s", arg, shape)
	}
	if parts > 1 {
		r.Partition = words[1]
	}
	if parts > 2 {
		r.Row = words[2]
	}
	for _, key := range words[1:] {
		if key == "" {
			return r, usagef("%q has an empty key", arg)
		}
		if strings.ContainsAny(key, "\\#?") || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return r, usagef("key %q has a character that the service forbids (\\ # ? or a control character)", key)
		}
	}
	return r, nil
}

// TableService returns the client of the account's Table service.
func (f *Factory) TableService() (*aztables.ServiceClient, error) {
	opts := &aztables.ClientOptions{ClientOptions: f.ClientOptions()}
	c, err := f.connectionTo(tableService)
	if err != nil {
		return nil, err
	}
	endpoint := strings.TrimSuffix(c.endpoint[tableService], "/")
	if endpoint == "" {
		return nil, noAccount()
	}
	switch {
	case c.key != "":
		cred, err := aztables.NewSharedKeyCredential(c.account, c.key)
		if err != nil {
			return nil, usagef("the account key is not usable")
		}
		return aztables.NewServiceClientWithSharedKey(endpoint, cred, opts)
	case c.sas != "":
		return aztables.NewServiceClientWithNoCredential(endpoint+"/?"+c.sas, opts)
	default:
		cred, err := f.tokenCredential()
		if err != nil {
			return nil, err
		}
		return aztables.NewServiceClient(endpoint, cred, opts)
	}
}

// Entity returns r's entity as a target that keeps every type.
func (f *Factory) Entity(r tableRef) (optimistic.Entity[optimistic.Properties], error) {
	s, err := f.TableService()
	if err != nil {
		return optimistic.Entity[optimistic.Properties]{}, err
	}
	return optimistic.TableEntity[optimistic.Properties](s.NewClient(r.Table), r.Partition, r.Row), nil
}

// entityFlags say what an entity's properties are: a JSON document or name=value pairs, or both, the pairs on top.
type entityFlags struct {
	File string
	Set  []string
}

func (e *entityFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&e.File, "file", "f", "", "`file` with the properties as JSON; - is stdin")
	cmd.Flags().StringArrayVar(&e.Set, "set", nil, "`name=value` to set, the value as JSON or else as text; may be repeated")
}

// parse checks what can be checked without reading the file.
func (e *entityFlags) parse() error {
	if e.File == "" && len(e.Set) == 0 {
		return withHint(usagef("no properties are given"), "give --file or --set, or both")
	}
	if len(e.Set) > 0 {
		_, err := newSetProperties(e.Set)
		return err
	}
	return nil
}

func (e *entityFlags) load(ctx context.Context, f *Factory) (optimistic.Properties, error) {
	return parsedOr(e.document(ctx, f))
}

// document returns the properties given by flags, as JSON.
func (e *entityFlags) document(ctx context.Context, f *Factory) ([]byte, error) {
	data := []byte("{}")
	if e.File != "" {
		file := &fileChange{name: e.File}
		if err := file.load(ctx, f); err != nil {
			return nil, err
		}
		data = file.data
	}
	if len(e.Set) > 0 {
		set, err := newSetProperties(e.Set)
		if err != nil {
			return nil, err
		}
		if data, err = set.apply(ctx, baseContent{Exists: true, Data: data}); err != nil {
			return nil, badDocument(err)
		}
	}
	return data, nil
}

// parseProperties reads properties as JSON.
func parseProperties(data []byte) (optimistic.Properties, error) {
	var p optimistic.Properties
	if err := json.Unmarshal(bytes.TrimSpace(data), &p); err != nil {
		if name := (*json.UnmarshalTypeError)(nil); errors.As(err, &name) {
			err = errors.New(plainJSON(err))
		}
		return nil, withHint(&filterError{what: "the properties are not an entity's", err: err},
			`a property is a text, a number, true or false; a member "name@odata.type" beside it gives it another type, such as Edm.Int64`)
	}
	for _, own := range []string{optimistic.LineageKey, optimistic.OperationsKey} {
		if _, there := p[own]; there {
			return nil, &filterError{what: "property " + own + " is reserved for azconc"}
		}
	}
	return p, nil
}

// entityResult is an entity that was read.
type entityResult struct {
	Outcome   string                `json:"outcome"`
	Resource  string                `json:"resource"`
	Partition string                `json:"partition_key"`
	Row       string                `json:"row_key"`
	ETag      string                `json:"etag"`
	Entity    optimistic.Properties `json:"entity"`
}

func (r entityResult) text(w io.Writer) {
	data, err := json.MarshalIndent(r.Entity, "", "  ")
	if err != nil {
		data = fmt.Appendf(nil, "{} (%v)", err)
	}
	fmt.Fprintf(w, "%s\n", data)
}

// tableETag reads an ETag of a table, which is weak and used as it was given. Without one, last writer wins has to be
// said by name.
func tableETag(s string, required bool) (azcore.ETag, error) {
	s = strings.TrimSpace(s)
	switch {
	case s == "*", strings.HasPrefix(s, `W/"`) && strings.HasSuffix(s, `"`) && len(s) > 4:
		return azcore.ETag(s), nil
	case s == "" && !required:
		return "", nil
	case s == "":
		return "", withHint(usagef("--if-match is missing"), "give the ETag that you read; '*' accepts any version: last writer wins")
	}
	return "", withHint(usagef("--if-match %s is not a table's ETag", s), `it looks like W/"datetime'2026-01-31T12%3A00%3A05.1234567Z'", as azconc table get -o json prints it`)
}

// tableExists is the hint for an entity that already exists.
func tableExists(err error) error {
	if errors.Is(err, optimistic.ErrExists) {
		return withHint(err, "azconc table update changes it; azconc table upsert replaces it, last writer wins")
	}
	return err
}
