package table

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

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
	return cli.On(f, cmd, parseTable(2), tableClient(f), func(ctx context.Context, on ref.Table, client *aztables.Client) (cli.Result, error) {
		data, err := f.WholeFile(ctx, file)
		if err != nil {
			return nil, err
		}
		ops, err := ParseOperations("the file", data)
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
	IfMatch string            `json:"if_match"`
}

// ParseOperations reads the lines of a source and refuses what can be seen to be wrong before anything is sent.
func ParseOperations(source string, data []byte) ([]Operation, error) {
	var ops []Operation
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	for {
		var op Operation
		err := d.Decode(&op)
		n := len(ops) + 1
		switch {
		case errors.Is(err, io.EOF) && len(ops) == 0:
			return nil, &fail.FilterError{What: source + " contains no write"}
		case errors.Is(err, io.EOF):
			return ops, nil
		case err != nil:
			err = cmp.Or(fail.ByteOrderMark(data), err)
			return nil, &fail.FilterError{What: fmt.Sprintf("object %d of %s is not a write", n, source), Err: errors.New(fail.PlainJSON(err))}
		case op.Row == "":
			return nil, &fail.FilterError{What: fmt.Sprintf("object %d of %s has no row", n, source)}
		case !strings.Contains(" insert merge replace upsert put delete expect ", " "+op.Op+" "):
			return nil, &fail.FilterError{What: fmt.Sprintf("object %d of %s: %q is not insert, merge, replace, upsert, put, delete or expect", n, source, op.Op)}
		case op.Op == "insert" && op.IfMatch != "":
			return nil, &fail.FilterError{What: fmt.Sprintf("object %d of %s: an insert has no version to match", n, source)}
		case op.Op != "delete" && op.Op != "expect" && op.Entity == nil, op.Op == "expect" && op.Entity == nil && op.IfMatch == "":
			return nil, &fail.FilterError{What: fmt.Sprintf("object %d of %s has no entity", n, source)}
		}
		if _, err := parseETag(op.IfMatch); err != nil {
			return nil, &fail.FilterError{What: fmt.Sprintf("object %d of %s: if_match %s is not a table's ETag", n, source, op.IfMatch)}
		}
		ops = append(ops, op)
	}
}

// ApplyAll makes the operations the content of a transaction.
func ApplyAll(ctx context.Context, tx *tables.Tx, ops []Operation) error {
	for _, op := range ops {
		if err := op.Apply(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// Apply makes the operation part of a transaction.
func (op Operation) Apply(ctx context.Context, tx *tables.Tx) error {
	if op.IfMatch != "" {
		if err := op.match(ctx, tx); err != nil {
			return err
		}
	}
	switch op.Op {
	case "insert":
		return tx.Insert(op.Row, op.Entity)
	case "merge":
		return tx.Merge(op.Row, op.Entity)
	case "replace":
		return tx.Replace(op.Row, op.Entity)
	case "upsert":
		return tx.Upsert(op.Row, op.Entity)
	case "put":
		return tx.Put(op.Row, op.Entity)
	case "delete":
		return tx.Delete(op.Row)
	}
	var found tables.Properties
	there, err := tx.Get(ctx, op.Row, &found)
	if err != nil {
		return err
	}
	for name, want := range op.Entity {
		if got, has := found[name]; !there || !has || got != want {
			return unexpected(op.Row, name, want.Value, got.Value)
		}
	}
	return nil
}

// match reads the row, so that the transaction is on condition of the version it finds, and holds that against the one
// that was given.
func (op Operation) match(ctx context.Context, tx *tables.Tx) error {
	there, err := tx.Get(ctx, op.Row, nil)
	if err != nil {
		return err
	}
	etag, _ := tx.ETag(op.Row)
	if !there || op.IfMatch != "*" && string(etag) != op.IfMatch {
		return unexpected(op.Row, "the ETag", op.IfMatch, string(etag))
	}
	return nil
}

// unexpected reports an entity that does not hold what an expect line says.
func unexpected(row, name, want, got string) error {
	return fail.Conflicting(fmt.Errorf("row %s: %s is %q, expected %q: nothing was written", row, name, got, want), "expected another value")
}
