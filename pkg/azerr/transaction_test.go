package azerr

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// batch is the service's answer to a transaction, one text per operation.
func batch(parts ...string) string {
	const outer, inner = "batchresponse_1", "changesetresponse_2"
	var b strings.Builder
	fmt.Fprintf(&b, "--%s\r\nContent-Type: multipart/mixed; boundary=%s\r\n\r\n", outer, inner)
	for _, part := range parts {
		fmt.Fprintf(&b, "--%s\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n%s\r\n", inner, part)
	}
	fmt.Fprintf(&b, "--%s--\r\n--%s--\r\n", inner, outer)
	return b.String()
}

func part(status int, code, message string) string {
	body := fmt.Sprintf(`{"odata.error":{"code":%q,"message":{"lang":"en-US","value":%q}}}`, code, message)
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nDataServiceVersion: 3.0;\r\nContent-Type: application/json;odata=minimalmetadata;charset=utf-8\r\n\r\n%s\r\n",
		status, http.StatusText(status), body)
}

const created = "HTTP/1.1 204 No Content\r\nETag: W/\"datetime'2026'\"\r\n\r\n"

// submit lets the real client send a transaction that is answered with body.
func submit(t *testing.T, status int, contentType, body string) error {
	t.Helper()
	answer := transport(func(r *http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {contentType}, "X-Ms-Request-Id": {"r-7"}}
		return &http.Response{StatusCode: status, Header: h, Request: r, Body: io.NopCloser(strings.NewReader(body))}, nil
	})
	client, err := aztables.NewClientWithNoCredential("https://acct.table.core.windows.net/t", &aztables.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: answer, Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	entity, err := json.Marshal(map[string]string{"PartitionKey": "p", "RowKey": "r"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.SubmitTransaction(t.Context(), []aztables.TransactionAction{{ActionType: aztables.TransactionTypeAdd, Entity: entity}}, nil)
	return err
}

func TestAFailedTransactionNamesItsOperation(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       string
		index      int
		code       string
		status     int
	}{
		{
			"a stale version", batch(part(412, "UpdateConditionNotSatisfied", "3:The update condition specified in the request was not satisfied.\nRequestId:1\nTime:2")),
			"conflict changed", 3, "UpdateConditionNotSatisfied", 412,
		},
		{
			"the first operation", batch(part(409, "EntityAlreadyExists", "0:The specified entity already exists.")),
			"conflict exists", 0, "EntityAlreadyExists", 409,
		},
		{
			"the last of a hundred, after a part that went well", batch(created, part(404, "ResourceNotFound", "99:The specified resource does not exist.")),
			"not found", 99, "ResourceNotFound", 404,
		},
		{
			"a server error may follow a commit", batch(part(500, "OperationTimedOut", "0:Operation could not be completed within the specified time.")),
			"unknown ambiguous transient", 0, "OperationTimedOut", 500,
		},
		{
			"a message without an index", batch(part(400, "InvalidInput", "One of the request inputs is not valid.")),
			"bad input", -1, "InvalidInput", 400,
		},
		{
			"braces and quotes in the message", batch(part(400, "InvalidInput", `2:Bad {"error": "x"} in "y"`)),
			"bad input", 2, "InvalidInput", 400,
		},
		{
			"no error object, only a status", batch("HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n\r\nno\r\n"),
			"unauthorised", -1, "", 403,
		},
		{
			"an error object that is cut off", batch("HTTP/1.1 412 Precondition Failed\r\nContent-Type: application/json\r\n\r\n{\"odata.error\":{\"code\":\"Upd"),
			"conflict changed", -1, "", 412,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := submit(t, 202, "multipart/mixed; boundary=batchresponse_1", tt.body)
			if response, ok := errors.AsType[*azcore.ResponseError](err); !ok || response.StatusCode != 202 || response.ErrorCode != "" {
				t.Fatalf("the premise is gone: the SDK reports %v", err)
			}
			for range 2 { // the body can be read again
				o := Classify(fmt.Errorf("submit: %w", err))
				if words(o) != tt.want || o.Index != tt.index || o.Code != tt.code || o.Status != tt.status || o.RequestID != "r-7" {
					t.Errorf("Classify = %q, %+v", words(o), o)
				}
			}
			index, code, ok := Transaction(fmt.Errorf("submit: %w", err))
			if !ok || index != tt.index || code != tt.code {
				t.Errorf("Transaction = %d, %q, %t; want %d, %q", index, code, ok, tt.index, tt.code)
			}
			if tt.code != "" && !Has(err, tt.code) {
				t.Errorf("Has does not see %s inside the transaction", tt.code)
			}
		})
	}
}

func TestATransactionRefusedAsAWholeIsAnOrdinaryAnswer(t *testing.T) {
	err := submit(t, 413, "application/json", `{"odata.error":{"code":"RequestBodyTooLarge","message":{"value":"0:The request body is too large."}}}`)
	if o := Classify(err); o.Kind != BadInput || o.Code != "RequestBodyTooLarge" || o.Index != -1 {
		t.Errorf("Classify = %+v", o)
	}
	if _, _, ok := Transaction(err); ok {
		t.Error("Transaction names an operation")
	}
}

func TestWhatIsNoFailedTransactionIsNotTakenForOne(t *testing.T) {
	for name, err := range map[string]error{
		"nil":                  nil,
		"no answer":            io.EOF,
		"another answer":       answered(412, "ConditionNotMet"),
		"an empty 202":         answered(202, ""),
		"a body that is gone":  unreadable(),
		"a 202 with no body":   &azcore.ResponseError{StatusCode: 202, RawResponse: &http.Response{}},
		"a 202 of other kinds": &azcore.ResponseError{StatusCode: 202},
	} {
		if index, code, ok := Transaction(err); ok || index != -1 || code != "" {
			t.Errorf("%s: Transaction = %d, %q, %t", name, index, code, ok)
		}
		if o := Classify(err); o.Index != -1 {
			t.Errorf("%s: Index = %d", name, o.Index)
		}
	}
}

func unreadable() error {
	err := answered(202, "")
	err.RawResponse.Body = io.NopCloser(breaks{})
	return err
}

// TestOneErrorMayBeClassifiedByMany is for the race detector: several callers whose work went into one transaction get
// the same error, and reading the SDK's kept body writes to it.
func TestOneErrorMayBeClassifiedByMany(t *testing.T) {
	err := submit(t, 202, "multipart/mixed; boundary=batchresponse_1", batch(part(412, "UpdateConditionNotSatisfied", "3:No.")))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if o := Classify(err); o.Index != 3 {
				t.Errorf("Index = %d, want 3", o.Index)
			}
		})
	}
	wg.Wait()
}
