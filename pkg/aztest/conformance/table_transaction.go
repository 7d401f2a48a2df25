package conformance

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func action(kind aztables.TransactionType, partition, row string, match azcore.ETag) aztables.TransactionAction {
	a := aztables.TransactionAction{ActionType: kind, Entity: entity(partition, row, map[string]any{"n": 7})}
	if match != "" {
		a.IfMatch = &match
	}
	return a
}

const (
	insert  = aztables.TransactionTypeAdd
	merge   = aztables.TransactionTypeUpdateMerge
	update  = aztables.TransactionTypeUpdateReplace
	remove  = aztables.TransactionTypeDelete
	upsert  = aztables.TransactionTypeInsertReplace
	upmerge = aztables.TransactionTypeInsertMerge
)

func transactions(t T, h Harness) {
	client := h.table(t)
	submit := func(actions ...aztables.TransactionAction) said {
		return respond(func(ctx context.Context) error {
			_, err := client.SubmitTransaction(ctx, actions, nil)
			return err
		})
	}
	old := add(t, client, "a")
	a, b := replace(t, client, "a"), add(t, client, "b")
	state := func() string {
		s, err := query(t, client, &aztables.ListEntitiesOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := state()
	for question, tt := range map[string]struct {
		expect
		actions []aztables.TransactionAction
	}{
		"an old ETag": {expect{service: "412 UpdateConditionNotSatisfied at 2"}, []aztables.TransactionAction{
			action(insert, "p", "new", ""), action(remove, "p", "b", b), action(merge, "p", "a", old), action(insert, "p", "new2", "")}},
		"an insert of what exists": {expect{service: "409 EntityAlreadyExists at 1"}, []aztables.TransactionAction{
			action(update, "p", "b", b), action(insert, "p", "a", "")}},
		"an update of what does not": {expect{service: "404 ResourceNotFound at 1"}, []aztables.TransactionAction{
			action(update, "p", "b", b), action(update, "p", "missing", "*")}},
		"one row twice": {expect{service: "400 InvalidDuplicateRow at 1"}, []aztables.TransactionAction{
			action(insert, "p", "new", ""), action(upmerge, "p", "new", "")}},
		"two partitions": {expect{service: "400 CommandsInBatchActOnDifferentPartitions at 1", emulator: success, why: "does not look"}, []aztables.TransactionAction{
			action(insert, "q", "c", ""), action(insert, "r", "c", "")}},
	} {
		h.check(t, tt.expect, question, submit(tt.actions...))
	}
	if h.Emulator {
		for _, partition := range []string{"q", "r"} {
			if _, err := client.DeleteEntity(t.Context(), partition, "c", nil); err != nil {
				t.Errorf("%v", err)
			}
		}
	}
	if after := state(); after != before {
		t.Errorf("after transactions that failed there are %s, before %s", after, before)
	}
	for row, etag := range map[string]azcore.ETag{"a": a, "b": b} {
		if got, err := client.GetEntity(t.Context(), "p", row, nil); err != nil || got.ETag != etag {
			t.Errorf("%s has the ETag %s after transactions that failed, %v; before %s", row, got.ETag, err, etag)
		}
	}

	var many []aztables.TransactionAction
	for i := range 101 {
		many = append(many, action(upsert, "many", fmt.Sprintf("r%03d", i), ""))
	}
	h.check(t, expect{service: success}, "100 operations", submit(many[:100]...))
	if !h.Emulator { // whose response to it is not HTTP
		h.check(t, expect{service: "400 InvalidInput at 100"}, "101 operations", submit(many...))
	}
	transactionETags(t, client, a, b)
	transactionKeys(t, h, client)
}

// transactionETags: on success every part that writes an entity has its new ETag, which the SDK does not return.
func transactionETags(t T, client *aztables.Client, a, b azcore.ETag) {
	var raw *http.Response
	_, err := client.SubmitTransaction(policy.WithCaptureResponse(t.Context(), &raw), []aztables.TransactionAction{
		action(update, "p", "a", a), action(remove, "p", "b", b), action(insert, "p", "c", ""), action(upmerge, "p", "d", ""),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := runtime.Payload(raw)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for line := range strings.Lines(string(body)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && strings.EqualFold(name, "ETag") {
			told = append(told, value)
		}
	}
	var want []string
	for _, row := range []string{"a", "c", "d"} {
		got, err := client.GetEntity(t.Context(), "p", row, nil)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, string(got.ETag))
	}
	if strings.Join(told, " ") != strings.Join(want, " ") {
		t.Errorf("the parts tell the ETags %v, the entities have %v", told, want)
	}
}

// transactionKeys: the SDK does not double the quotes of keys in the URLs of a transaction. A caller that doubles them
// puts the doubled ones into the body as well; the URL counts.
func transactionKeys(t T, h Harness, client *aztables.Client) {
	if _, err := client.AddEntity(t.Context(), entity("o'b", "r'1", map[string]any{"n": 1}), nil); err != nil {
		t.Fatal(err)
	}
	got := respond(func(ctx context.Context) error {
		_, err := client.SubmitTransaction(ctx, []aztables.TransactionAction{
			action(merge, "o''b", "r''1", "*"), action(insert, "o'b", "r'2", ""),
		}, nil)
		return err
	})
	h.check(t, expect{service: success}, "a key with a quote", got)
	for _, row := range []string{"r'1", "r'2"} {
		if n := string(wire(t, client, "o'b", row, aztables.MetadataFormatMinimal)["n"]); n != "7" {
			t.Errorf("%s has n = %s after the transaction, want 7", row, n)
		}
	}
}

// entityContention: of many writers with one ETag exactly one wins.
func entityContention(t T, h Harness) {
	client := h.table(t)
	const writers = 16
	for round := range 3 {
		base := replace(t, client, "hot")
		var won atomic.Int32
		var group sync.WaitGroup
		for range writers {
			group.Go(func() {
				_, err := writes[round%2].send(context.Background(), client, "hot", base)
				if err == nil {
					won.Add(1)
				}
			})
		}
		group.Wait()
		if won.Load() != 1 {
			t.Errorf("round %d: %d of %d writers with the same ETag won", round, won.Load(), writers)
		}
	}
}
