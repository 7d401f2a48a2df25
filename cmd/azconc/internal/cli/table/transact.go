package table

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
)

type transactResult struct {
	cli.WriteResult
	ETags map[string]string `json:"etags"`
}

func newTransactCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "transact <table/partition> --file <file>",
		Short: "Carry out several writes of one partition, all or none",
		Long: `Carry out several writes of one partition, all or none. The file has one JSON object per line:

  {"op": "insert", "row": "17", "entity": {"n": 0}}      it must not exist
  {"op": "merge", "row": "16", "entity": {"n": 1}}       set some properties; replace: all of them
  {"op": "upsert", "row": "15", "entity": {"n": 1}}      merge or insert; put: replace or insert
  {"op": "delete", "row": "14"}                          it must exist
  {"op": "expect", "row": "13", "entity": {"n": 5}}      it must have these values when the transaction commits

"if_match" in any of them but insert is the ETag that the row must have: if it has another, the exit code is 4.`,
		Example: "  azconc table transact jobs/eu --file move.jsonl --op-id move-17",
	}
	var file, operationID string
	flags.File(cmd.Flags(), &file, "`file` with the writes, one JSON object per line; - is stdin")
	flags.AddOperationID(cmd.Flags(), &operationID, "a written row", optimistic.OperationsKept)
	return cli.On(f, cmd, parseTable(2), f.Table, func(ctx context.Context, on ref.Table, client *aztables.Client) (cli.Result, error) {
		data, err := f.WholeFile(ctx, file)
		if err != nil {
			return nil, err
		}
		ops, err := ParseOperations("the file", on.Partition, data)
		if err != nil {
			return nil, fail.BadDocument(err)
		}
		r, err := tables.Transact(ctx, client, on.Partition, func(ctx context.Context, tx *tables.Tx) error {
			return ApplyAll(ctx, tx, ops)
		}, &tables.TransactOptions{OperationID: operationID, SendOptions: f.Sending()})
		if err != nil {
			return nil, fail.Tally(err, r.Result)
		}
		result := transactResult{WriteResult: cli.NewWriteResult(on, "transacted", r.Result), ETags: map[string]string{}}
		for row, etag := range r.ETags {
			result.ETags[row] = string(etag)
		}
		return result, nil
	})
}

// Operation is a line of a transaction.
type Operation struct {
	Op      string            `json:"op"`
	Row     string            `json:"row"`
	Entity  tables.Properties `json:"entity"`
	IfMatch condition         `json:"if_match,omitempty"`
}

// condition is an ETag. One that is empty, or null, comes from a variable that is not set, and must not be taken for none.
type condition azcore.ETag

func (c *condition) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	etag, err := flags.ParseTableETag("if_match", text)
	*c = condition(etag)
	return err
}

// ParseOperations reads the lines of a source, which are about rows of one partition, and refuses what can be seen to be wrong before
// anything is sent.
func ParseOperations(source, partition string, data []byte) ([]Operation, error) {
	if err := fail.NotUTF8(data); err != nil {
		return nil, &fail.FilterError{What: source, Err: err}
	}
	var ops []Operation
	rows := map[string]bool{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	for {
		var line struct {
			Op      string          `json:"op"`
			Row     string          `json:"row"`
			Entity  json.RawMessage `json:"entity"`
			IfMatch condition       `json:"if_match"`
		}
		err := d.Decode(&line)
		op := Operation{Op: line.Op, Row: line.Row, IfMatch: line.IfMatch}
		wrong := func(text string, cause error) ([]Operation, error) {
			if cause != nil {
				cause = errors.New(fail.PlainJSON(fail.BadDocument(cause)))
			}
			return nil, &fail.FilterError{What: fmt.Sprintf("object %d of %s", len(ops)+1, source) + text, Err: cause}
		}
		switch {
		case errors.Is(err, io.EOF) && len(ops) == 0:
			return nil, &fail.FilterError{What: source + " contains no write"}
		case errors.Is(err, io.EOF) && len(rows) > maxRows:
			return nil, &fail.FilterError{What: fmt.Sprintf("%s is about %d rows: a transaction takes %d", source, len(rows), maxRows)}
		case errors.Is(err, io.EOF):
			return ops, nil
		case err != nil:
			return wrong(" is not a write", err)
		case op.Row == "":
			return wrong(" has no row", nil)
		case !strings.Contains(" insert merge replace upsert put delete expect ", " "+op.Op+" "):
			return wrong(fmt.Sprintf(": %q is not insert, merge, replace, upsert, put, delete or expect", op.Op), nil)
		case op.Op == "insert" && op.IfMatch != "":
			return wrong(": an insert has no version to match", nil)
		case op.Op == "expect" && hasNull(line.Entity):
			return wrong(" expects a null, which no property is", nil)
		case string(line.Entity) == "null", line.Entity == nil && op.Op != "delete" && op.Op != "expect":
			return wrong(" has no entity", nil)
		}
		if err = ref.CheckKey(op.Row); err == nil && line.Entity != nil {
			if err = checkKeys(ref.Table{Partition: partition, Row: op.Row}, line.Entity); err == nil {
				op.Entity, err = ParseProperties(line.Entity)
			}
		}
		switch {
		case err != nil:
			return wrong(" is not a write", err)
		case op.Op == "expect" && len(op.Entity) == 0 && op.IfMatch == "":
			return wrong(" expects no value", nil)
		}
		ops, rows[op.Row] = append(ops, op), true
	}
}

const maxRows = 100 // of an entity group transaction (REST: "Performing entity group transactions")

// hasNull reports whether an entity has a null, which is left out of its properties.
func hasNull(entity []byte) bool {
	var given map[string]any
	err := json.Unmarshal(entity, &given)
	return err == nil && slices.Contains(slices.Collect(maps.Values(given)), nil)
}

// ApplyAll makes the operations the content of a transaction.
func ApplyAll(ctx context.Context, tx *tables.Tx, ops []Operation) error {
	for _, op := range ops {
		if err := op.apply(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// apply makes the operation part of a transaction. A row that it says something about is read, so that the transaction is on condition of
// the version that it finds.
func (op Operation) apply(ctx context.Context, tx *tables.Tx) error {
	if op.IfMatch != "" || op.Op == "expect" {
		var found tables.Properties
		there, err := tx.Get(ctx, op.Row, &found)
		if err != nil {
			return err
		}
		etag, _ := tx.ETag(op.Row)
		switch {
		case !there:
			return unexpected(op.Row, "does not exist")
		case op.IfMatch != "" && op.IfMatch != "*" && condition(etag) != op.IfMatch:
			return unexpected(op.Row, "has the ETag %s, expected %s", etag, op.IfMatch)
		case op.Op == "expect":
			return op.expect(found)
		}
	}
	writes := map[string]func(row string, entity any) error{
		"insert": tx.Insert, "merge": tx.Merge, "replace": tx.Replace, "upsert": tx.Upsert, "put": tx.Put,
	}
	if write := writes[op.Op]; write != nil {
		return write(op.Row, op.Entity)
	}
	return tx.Delete(op.Row)
}

// expect compares the stored values with the expected ones.
func (op Operation) expect(found tables.Properties) error {
	for _, name := range slices.Sorted(maps.Keys(op.Entity)) {
		want := op.Entity[name]
		switch got, has := found[name]; {
		case !has:
			return unexpected(op.Row, "has no %s, expected %q", name, want.Value)
		case got.Type != want.Type:
			return unexpected(op.Row, "has %s %q of type %s, expected %q of type %s", name, got.Value, got.Type, want.Value, want.Type)
		case !same(got, want):
			return unexpected(op.Row, "has %s %q, expected %q", name, got.Value, want.Value)
		}
	}
	return nil
}

// same reports whether two properties of one type have one value. The service spells some its own way, such as 1e5 as 100000.
func same(a, b tables.Property) bool {
	x, _ := a.Any()
	y, _ := b.Any()
	return a == b || reflect.DeepEqual(x, y) || a.Type == tables.EDMGUID && strings.EqualFold(a.Value, b.Value)
}

// unexpected reports a row that is not what a line says.
func unexpected(row, is string, args ...any) error {
	return fail.Conflicting(fmt.Errorf("row %s %s: nothing was written", row, fmt.Sprintf(is, args...)), "expected another value")
}
