package tables

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

func adds(rows ...string) (actions []aztables.TransactionAction) {
	for _, row := range rows {
		actions = append(actions, aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd,
			Entity: fmt.Appendf(nil, `{"PartitionKey":"p","RowKey":%q}`, row)})
	}
	return actions
}

func TestATransactionReturnsItsETags(t *testing.T) {
	table := aztest.New(nil).Table("orders")
	etags, err := Submit(t.Context(), table, adds("a", "b"))
	if err != nil || len(etags) != 2 || etags[0] == "" || etags[1] == "" {
		t.Errorf("Submit = %q, %v", etags, err)
	}
	etags, err = Submit(t.Context(), table, adds("c", "a"))
	if index, code, ok := azerr.Transaction(err); !ok || index != 1 || code != "EntityAlreadyExists" || etags != nil {
		t.Errorf("Submit = %q, %v, want the refusal of the second operation", etags, err)
	}
}

// The SDK takes a truncated response for a success, whatever it said.
func TestATruncatedResponseLeavesTheOutcomeOpen(t *testing.T) {
	for name, rows := range map[string][]string{"a success": {"b"}, "a refusal": {"a"}, "a refusal of many": {"a", "b", "c", "d", "e", "f"}} {
		s := aztest.New(nil)
		table := s.Table("orders")
		if _, err := Submit(t.Context(), table, adds("a")); err != nil {
			t.Fatal(err)
		}
		s.SetFaults(aztest.Fault{Kind: aztest.Truncate})
		ctx := policy.WithRetryOptions(t.Context(), policy.RetryOptions{MaxRetries: -1})
		etags, err := Submit(ctx, table, adds(rows...))
		if out := azerr.Classify(err); etags != nil || !out.Ambiguous() || !out.Transient() {
			t.Errorf("%s: %q, %v, want the error of a lost response", name, etags, err)
		}
	}
}

// respond is a transport that gives one response.
type respond string

func (text *respond) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{"Content-Type": {"multipart/mixed; boundary=batchresponse_1"}, "X-Ms-Request-Id": {"1"}},
		Body: io.NopCloser(strings.NewReader(string(*text))), Request: r}, nil
}

// successes is the service's response to operations that have all succeeded.
func successes(n int) string {
	var b strings.Builder
	b.WriteString("--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_2\r\n\r\n")
	for i := range n {
		fmt.Fprintf(&b, "--changesetresponse_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"+
			"HTTP/1.1 204 No Content\r\nX-Content-Type-Options: nosniff\r\nDataServiceVersion: 1.0;\r\nETag: W/\"datetime'%d'\"\r\n\r\n\r\n", i)
	}
	b.WriteString("--changesetresponse_2--\r\n--batchresponse_1--\r\n")
	return b.String()
}

// TestOnlyTheWholeResponseIsASuccess cuts a success and a refusal after each byte, and changes them. What lacks no more than the end of
// the last line is whole.
func TestOnlyTheWholeResponseIsASuccess(t *testing.T) {
	success := successes(3)
	refusal := strings.Replace(successes(1), "HTTP/1.1 204 No Content\r\n", "HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\n", 1)
	refusal = strings.Replace(refusal, "\r\n\r\n\r\n--changesetresponse_2--", "\r\n\r\n{\"odata.error\":{\"code\":\"EntityAlreadyExists\",\"message\":{\"lang\":\"en-US\",\"value\":\"1:The specified entity already exists.\"}}}\r\n--changesetresponse_2--", 1)
	broken := []string{"", strings.ReplaceAll(success, "ETag", "Tag"), successes(2), successes(4), "HTTP/1.1 204",
		strings.Replace(success, "changesetresponse_2--", "changesetresponse_3--", 1), strings.Replace(success, "HTTP/1.1 204", "HTTP/1.1 304", 1)}
	for _, whole := range []string{success, refusal} {
		for end := range strings.LastIndex(whole, "\r\n--changesetresponse_2--") {
			broken = append(broken, whole[:end])
		}
	}
	var response respond
	client, err := aztables.NewClientWithNoCredential("https://account.table.core.windows.net/orders", &aztables.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: &response, Retry: policy.RetryOptions{MaxRetries: -1}}})
	if err != nil {
		t.Fatal(err)
	}
	submit := func(text string) ([]azcore.ETag, error) {
		response = respond(text)
		return Submit(t.Context(), client, adds("a", "b", "c"))
	}
	for _, text := range broken {
		etags, err := submit(text)
		if _, _, refused := azerr.Transaction(err); etags != nil || err == nil || !refused && !azerr.Classify(err).Ambiguous() {
			t.Errorf("of the response\n%s\ncomes %q, %v", text, etags, err)
		}
	}
	if etags, err := submit(success); err != nil || !slices.Equal(etags, []azcore.ETag{`W/"datetime'0'"`, `W/"datetime'1'"`, `W/"datetime'2'"`}) {
		t.Errorf("%q, %v", etags, err)
	}
	if index, code, refused := azerr.Transaction(func() error { _, err := submit(refusal); return err }()); !refused || index != 1 || code != "EntityAlreadyExists" {
		t.Errorf("the refusal is %d %q", index, code)
	}
}
