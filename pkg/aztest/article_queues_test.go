package aztest_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

var update = flag.Bool("update", false, "write the generated tables into README.md")

// queueRow is what a service answered about an operation on queues.
type queueRow struct {
	operation  string
	etag       bool // in the answer
	conditions bool // If-Match is heeded
	receipt    bool // a pop receipt that is not the latest is refused
}

// signedHeader adds the If-Match of the context before a request is signed, which policy.WithHTTPHeader does after.
type signedHeader struct{}

type ifMatch struct{}

func (signedHeader) Do(r *policy.Request) (*http.Response, error) {
	if etag, ok := r.Raw().Context().Value(ifMatch{}).(string); ok {
		r.Raw().Header.Set("If-Match", etag)
	}
	return r.Next()
}

// queueOperations are all that the article's section on queues is about, and the rest. Those of a message get its id and
// a receipt. They are asked in this order.
var queueOperations = []struct {
	name string
	of   func(ctx context.Context, r queueRig, id, receipt string) error
	held bool // the receipt counts
}{
	{"Create Queue", func(ctx context.Context, r queueRig, _, _ string) error {
		_, err := r.queue.Create(ctx, nil)
		return err
	}, false},
	{"Set Queue Metadata", func(ctx context.Context, r queueRig, _, _ string) error {
		_, err := r.queue.SetMetadata(ctx, &azqueue.SetMetadataOptions{Metadata: map[string]*string{"a": to.Ptr("1")}})
		return err
	}, false},
	{"Get Queue Metadata", func(ctx context.Context, r queueRig, _, _ string) error {
		_, err := r.queue.GetProperties(ctx, nil)
		return err
	}, false},
	{"Set Queue ACL", func(ctx context.Context, r queueRig, _, _ string) error {
		_, err := r.queue.SetAccessPolicy(ctx, nil)
		return err
	}, false},
	{"Get Queue ACL", func(ctx context.Context, r queueRig, _, _ string) error {
		_, err := r.queue.GetAccessPolicy(ctx, nil)
		return err
	}, false},
	{"Set Queue Service Properties", func(ctx context.Context, r queueRig, _, _ string) error {
		_, err := r.service.SetProperties(ctx, &azqueue.SetPropertiesOptions{HourMetrics: &azqueue.Metrics{
			Version: to.Ptr("1.0"), Enabled: to.Ptr(false), RetentionPolicy: &azqueue.RetentionPolicy{Enabled: to.Ptr(false)}}})
		return err
	}, false},
	{"Put Message", func(ctx context.Context, r queueRig, _, _ string) error {
		_, err := r.queue.EnqueueMessage(ctx, "x", nil)
		return err
	}, false},
	{"Peek Messages", func(ctx context.Context, r queueRig, _, _ string) error {
		_, err := r.queue.PeekMessages(ctx, nil)
		return err
	}, false},
	{"Get Messages", func(ctx context.Context, r queueRig, _, _ string) error {
		_, err := r.queue.DequeueMessages(ctx, nil)
		return err
	}, false},
	{"Update Message", func(ctx context.Context, r queueRig, id, receipt string) error {
		_, err := r.queue.UpdateMessage(ctx, id, receipt, "y", &azqueue.UpdateMessageOptions{VisibilityTimeout: to.Ptr(int32(30))})
		return err
	}, true},
	{"Delete Message", func(ctx context.Context, r queueRig, id, receipt string) error {
		_, err := r.queue.DeleteMessage(ctx, id, receipt, nil)
		return err
	}, true},
	{"Clear Messages", func(ctx context.Context, r queueRig, _, _ string) error {
		_, err := r.queue.ClearMessages(ctx, nil)
		return err
	}, false},
	{"Delete Queue", func(ctx context.Context, r queueRig, _, _ string) error {
		_, err := r.queue.Delete(ctx, nil)
		return err
	}, false},
}

// TestTheArticlesSectionOnQueues: queues have neither ETags nor conditions, so the last writer wins, but for a message,
// which belongs to who has its latest pop receipt. The README carries the table.
func TestTheArticlesSectionOnQueues(t *testing.T) {
	tables := map[string][]queueRow{}
	onQueues(t, func(t *testing.T, r queueRig) {
		var rows []queueRow
		for _, op := range queueOperations {
			row := queueRow{operation: op.name}
			id, receipt := "", ""
			if op.held {
				sent := r.put("held", nil)
				id, receipt = *sent.MessageID, *sent.PopReceipt
				r.get(32, 60) // has made the receipt an old one
				row.receipt = op.of(t.Context(), r, id, receipt) != nil
				sent = r.put("held", nil)
				id, receipt = *sent.MessageID, *sent.PopReceipt
			}
			var answer *http.Response
			never := context.WithValue(t.Context(), ifMatch{}, `"0x0"`)
			if !r.azurite { // whose clients are made elsewhere, and whose signatures nobody looks at
				never = policy.WithHTTPHeader(t.Context(), http.Header{"If-Match": {`"0x0"`}})
			}
			err := op.of(runtime.WithCaptureResponse(never, &answer), r, id, receipt)
			if answer == nil {
				t.Fatalf("%s: %v", op.name, err)
			}
			row.etag, row.conditions = answer.Header.Get("ETag") != "", answer.StatusCode == http.StatusPreconditionFailed
			if err != nil && !row.conditions {
				t.Errorf("%s: %v", op.name, err)
			}
			if row.etag || row.conditions || row.receipt != op.held {
				t.Errorf("%+v; the article knows of nothing but the receipt, here %t", row, op.held)
			}
			rows = append(rows, row)
		}
		tables[t.Name()] = rows
	})
	var first string
	for where, rows := range tables {
		switch text := queuesMarkdown(rows); {
		case first == "":
			first = text
		case first != text:
			t.Errorf("%s answers otherwise:\n%s", where, text)
		}
	}
	if first != "" {
		carriedByReadme(t, "queues", first)
	}
}

func queuesMarkdown(rows []queueRow) string {
	var b strings.Builder
	b.WriteString("| operation | returns an ETag | takes conditions | who may |\n|---|---|---|---|\n")
	word := map[bool]string{true: "yes", false: "no"}
	for _, r := range rows {
		who := "anybody: the last writer wins"
		switch {
		case r.receipt:
			who = "who has the latest pop receipt"
		case strings.HasPrefix(r.operation, "Get") || strings.HasPrefix(r.operation, "P"):
			who = "anybody"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.operation, word[r.etag], word[r.conditions], who)
	}
	return b.String()
}

// carriedByReadme holds a generated table against its place in the README.
func carriedByReadme(t *testing.T, name, table string) {
	t.Helper()
	t.Logf("\n%s", table)
	content, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- generated: "+name+" -->\n", "<!-- end -->\n"
	before, rest, found := strings.Cut(string(content), begin)
	now, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("the README has no place for the generated table of %s", name)
	}
	if now == table {
		return
	}
	if *update {
		if err := os.WriteFile("README.md", []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("the README's table is not what was answered: go test ./pkg/aztest -run TestTheArticle -args -update\n%s", table)
}
