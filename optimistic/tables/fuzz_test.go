package tables

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// FuzzStoredEntity reads any JSON as an entity, as another program may have stored it. A value of a map or a struct that is
// read from it and written unchanged leaves every property as it is, with its type.
func FuzzStoredEntity(f *testing.F) {
	f.Add([]byte(`{"odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":"r","Timestamp":"2024-01-01T00:00:00Z",` + everyType[1:]))
	f.Add([]byte(`{"n":1,"s":"x","d":1.5,"b":true,"l":"9007199254740993","l@odata.type":"Edm.Int64","nan":"NaN","nan@odata.type":"Edm.Double"}`))
	f.Add([]byte(`{"n":"5","n@odata.type":"Edm.String","s":5,"d":3.0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := parseEntity(data)
		if err != nil {
			return
		}
		var asMap map[string]any
		if err := decodeInto(e, &asMap); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if d, err := changeOf(e.properties, true, asMap, e.partition, e.row); err != nil || !d.empty() {
			t.Errorf("%s: a map that was not changed sets %v, %v", data, d.set, err)
		}
		var some struct {
			N *int32   `json:"n,omitempty"`
			S *string  `json:"s,omitempty"`
			D *float64 `json:"d,omitempty"`
			B *bool    `json:"b,omitempty"`
			L *int64   `json:"l,omitempty"`
		}
		if decodeInto(e, &some) != nil {
			return // another type than the struct's
		}
		if d, err := changeOf(e.properties, true, some, e.partition, e.row); err != nil || !d.empty() {
			t.Errorf("%s: a struct that was not changed, %+v, sets %v, %v", data, some, d.set, err)
		}
	})
}

// canned gives the same response to every request.
type canned struct {
	status      int
	contentType string
	body        []byte
}

func (c canned) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {c.contentType}}, Body: io.NopCloser(bytes.NewReader(c.body)), Request: r}, nil
}

// FuzzTransactionAnswer makes any bytes the answer to a transaction of two. It never ends in a panic; it counts as a success
// only if there is an answer to each operation, with an ETag for the one that writes.
func FuzzTransactionAnswer(f *testing.F) {
	part := func(lines string) string { return "--c\r\nContent-Type: application/http\r\n\r\n" + lines + "\r\n" }
	whole := func(parts string) []byte {
		return []byte("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" + parts + "--c--\r\n--b--\r\n")
	}
	f.Add(202, "multipart/mixed; boundary=b", whole(part("HTTP/1.1 204 No Content\r\nETag: W/\"1\"\r\n\r\n")+part("HTTP/1.1 204 No Content\r\n\r\n")))
	f.Add(202, "multipart/mixed; boundary=b", whole(part("HTTP/1.1 204 No Content\r\nETag: W/\"1\"\r\n\r\n")))
	f.Add(202, "multipart/mixed; boundary=b", whole(part("HTTP/1.1 412 Precondition Failed\r\nContent-Type: application/json\r\n\r\n{\"odata.error\":{\"code\":\"UpdateConditionNotSatisfied\",\"message\":{\"lang\":\"en-US\",\"value\":\"1:No.\"}}}")))
	f.Add(202, "multipart/mixed; boundary=b", []byte("--b\r\n"))
	f.Add(202, "text/html", []byte("<html>"))
	actions := []aztables.TransactionAction{
		{ActionType: aztables.TransactionTypeInsertMerge, Entity: []byte(`{"PartitionKey":"p","RowKey":"r"}`)},
		{ActionType: aztables.TransactionTypeDelete, Entity: []byte(`{"PartitionKey":"p","RowKey":"s"}`), IfMatch: anyETag()},
	}
	f.Fuzz(func(t *testing.T, status int, contentType string, body []byte) {
		client, err := aztables.NewClientWithNoCredential("https://acme.table.core.windows.net/jobs", &aztables.ClientOptions{
			ClientOptions: policy.ClientOptions{Transport: canned{status, contentType, body}, Retry: policy.RetryOptions{MaxRetries: -1}},
		})
		if err != nil {
			t.Fatal(err)
		}
		etags, err := Submit(context.Background(), client, actions)
		if err == nil && (status != http.StatusAccepted || len(etags) != 2 || etags[0] == "") {
			t.Errorf("%d %q %q is a success, with %q", status, contentType, body, etags)
		}
	})
}

func anyETag() *azcore.ETag { e := azcore.ETagAny; return &e }
