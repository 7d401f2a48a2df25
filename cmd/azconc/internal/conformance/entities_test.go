package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/pkg/azerr"
)

// inTables makes a table, {table} in the rules.
func inTables(t *testing.T, h harness) *world {
	service, name := h.Tables(t)
	return &world{h: h, table: name, entities: service.NewClient(name), versions: map[string][]string{},
		carry: func(ctx context.Context) error { _, err := service.GetProperties(ctx, nil); return err }}
}

// path returns the resource of the entity with a row key in partition p.
func (w *world) path(row string) string {
	return fmt.Sprintf("%s(PartitionKey='p',RowKey='%s')", w.table, row)
}

// member returns the member of a JSON object as it is written, or "none".
func member(body, name string) said {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		return said("error: " + err.Error())
	}
	if members[name] == nil {
		return "none"
	}
	return said(members[name])
}

var rowKeys = regexp.MustCompile(`"RowKey":"([^"]*)"`)

// rows lists the row keys in a page of entities.
func rows(body string) said {
	var keys []string
	for _, m := range rowKeys.FindAllStringSubmatch(body, -1) {
		keys = append(keys, m[1])
	}
	return said(cmp.Or(strings.Join(keys, " "), "none"))
}

// actions are the operations of a transaction, by the names of their macros. Without an ETag, update and merge are upserts.
var actions = map[string][2]aztables.TransactionType{
	"insert": {aztables.TransactionTypeAdd}, "remove": {aztables.TransactionTypeDelete, aztables.TransactionTypeDelete},
	"update": {aztables.TransactionTypeInsertReplace, aztables.TransactionTypeUpdateReplace},
	"merge":  {aztables.TransactionTypeInsertMerge, aztables.TransactionTypeUpdateMerge},
}

// batch sends "insert ROW | update ROW ETAG | …" as one transaction. A row "q/r" is in partition q, others are in p.
func (w *world) batch(t *testing.T, step string) said {
	t.Helper()
	var all []aztables.TransactionAction
	for part := range strings.SplitSeq(w.fill(t, step), " | ") {
		words := strings.Fields(part)
		partition, row, ok := strings.Cut(words[1], "/")
		if !ok {
			partition, row = "p", words[1]
		}
		entity, err := json.Marshal(map[string]any{"PartitionKey": partition, "RowKey": row, "n": 7})
		if err != nil {
			t.Fatal(err)
		}
		a := aztables.TransactionAction{ActionType: actions[words[0]][0], Entity: entity}
		if len(words) > 2 {
			a.ActionType, a.IfMatch = actions[words[0]][1], new(azcore.ETag(words[2]))
		}
		all = append(all, a)
	}
	var failed error
	got := respondTo(t.Context(), func(ctx context.Context) error {
		_, failed = w.entities.SubmitTransaction(ctx, all, nil)
		return failed
	})
	if index, code, ok := azerr.Transaction(failed); ok { // which fails inside a success
		return said(fmt.Sprintf("%d %s at %d", azerr.Classify(failed).Status, code, index))
	}
	return got
}
