package batch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

// prepared returns a client with Policy, which is known to have it.
func prepared(t *testing.T, transport policy.Transporter, endpoint string, others ...policy.Policy) *aztables.Client {
	t.Helper()
	client := clientOf(t, transport, endpoint, append([]policy.Policy{Policy{}}, others...)...)
	learn(client, true)
	return client
}

func clientOf(t *testing.T, transport policy.Transporter, endpoint string, policies ...policy.Policy) *aztables.Client {
	t.Helper()
	service, err := aztables.NewServiceClientWithNoCredential(endpoint, &aztables.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: transport, PerRetryPolicies: policies, Retry: policy.RetryOptions{MaxRetries: -1}}})
	if err != nil {
		t.Fatal(err)
	}
	return service.NewClient("orders")
}

type policyFunc func(r *policy.Request) (*http.Response, error)

func (f policyFunc) Do(r *policy.Request) (*http.Response, error) { return f(r) }

// wireOf is a transport that keeps the requests and responds with a text.
type wireOf struct {
	status int
	answer string
	sent   []string
	header []http.Header
}

func (w *wireOf) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil || int64(len(body)) != r.ContentLength {
		return nil, fmt.Errorf("%d bytes, the request says %d: %w", len(body), r.ContentLength, err)
	}
	w.sent, w.header = append(w.sent, r.Method+" "+r.URL.String()+"\n"+string(body)), append(w.header, r.Header)
	return &http.Response{StatusCode: w.status, Header: http.Header{"Content-Type": {"multipart/mixed; boundary=batchresponse_1"}, "X-Ms-Request-Id": {"1"}},
		Body: io.NopCloser(strings.NewReader(w.answer)), Request: r}, nil
}

// answerTo is the service's response to operations that have all succeeded.
func answerTo(n int) string {
	var b strings.Builder
	b.WriteString("--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_2\r\n\r\n")
	for i := range n {
		fmt.Fprintf(&b, "--changesetresponse_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"+
			"HTTP/1.1 204 No Content\r\nX-Content-Type-Options: nosniff\r\nDataServiceVersion: 1.0;\r\nETag: W/\"datetime'%d'\"\r\n\r\n\r\n", i)
	}
	b.WriteString("--changesetresponse_2--\r\n--batchresponse_1--\r\n")
	return b.String()
}

var ids = regexp.MustCompile(`(batch|changeset)_[0-9a-f-]{36}`)

// TestThePolicySendsWhatTheSDKSends compares the requests line by line, entities as JSON, without the random boundaries.
func TestThePolicySendsWhatTheSDKSends(t *testing.T) {
	kinds := []aztables.TransactionType{aztables.TransactionTypeAdd, aztables.TransactionTypeDelete, aztables.TransactionTypeInsertMerge,
		aztables.TransactionTypeInsertReplace, aztables.TransactionTypeUpdateMerge, aztables.TransactionTypeUpdateReplace}
	var all [][]aztables.TransactionAction
	var together []aztables.TransactionAction
	for _, kind := range kinds {
		for _, match := range []*azcore.ETag{nil, to.Ptr(azcore.ETagAny), to.Ptr(azcore.ETag(`W/"datetime'2026-11-23T07%3A00%3A00Z'"`))} {
			for _, entity := range []string{
				`{"PartitionKey":"p","RowKey":"r"}`,
				`{"PartitionKey":"a queue-20261123","RowKey":"o''brien é%41+&?#","n":1,"x":"line\r\n"}`,
				`{"A":{"RowKey":"other"},"PartitionKey":"p\u00e9","RowKey":"r"}`,
			} {
				a := aztables.TransactionAction{ActionType: kind, Entity: []byte(entity), IfMatch: match}
				all, together = append(all, []aztables.TransactionAction{a}), append(together, a)
			}
		}
	}
	for _, endpoint := range []string{"https://account.table.core.windows.net", "http://127.0.0.1:10002/account", "https://account.table.core.windows.net/?sv=2026&sig=a%2Bb%3D"} {
		for _, actions := range append(all, together) {
			w := &wireOf{status: http.StatusAccepted, answer: answerTo(len(actions))}
			if _, err := Submit(t.Context(), clientOf(t, w, endpoint), actions); err != nil {
				t.Fatal(err)
			}
			client := prepared(t, w, endpoint)
			if _, err := Submit(t.Context(), client, actions); err != nil {
				t.Fatal(err)
			}
			if plain, fast := ids.ReplaceAllString(w.sent[0], "$1"), ids.ReplaceAllString(w.sent[1], "$1"); !sameJSON(plain, fast) {
				t.Errorf("the SDK sends\n%s\nthe policy\n%s", plain, fast)
			}
			for _, header := range w.header {
				header.Set("Content-Type", ids.ReplaceAllString(header.Get("Content-Type"), "$1"))
			}
			w.header[0].Set("Content-Length", w.header[1].Get("Content-Length"))
			if !reflect.DeepEqual(w.header[0], w.header[1]) {
				t.Errorf("headers %v and %v", w.header[0], w.header[1])
			}
			if !hasPolicy(client) || len(w.sent) != 2 {
				t.Errorf("%d requests", len(w.sent))
			}
		}
	}
}

// sameJSON compares two texts line by line; a line that is an object may be written differently, and so may its length.
func sameJSON(a, b string) bool {
	return slices.EqualFunc(strings.Split(a, "\r\n"), strings.Split(b, "\r\n"), func(a, b string) bool {
		var x, y any
		switch {
		case a == b, strings.HasPrefix(a, "Content-Length: ") && strings.HasPrefix(b, "Content-Length: "):
			return true
		case json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil:
			return false
		}
		return reflect.DeepEqual(x, y)
	})
}

// TestThePolicyReadsWhatTheSDKReads cuts responses short at every byte, and compares what becomes of them.
func TestThePolicyReadsWhatTheSDKReads(t *testing.T) {
	success := answerTo(3)
	refusal := strings.Replace(answerTo(1), "HTTP/1.1 204 No Content\r\n", "HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\n", 1)
	refusal = strings.Replace(refusal, "\r\n\r\n\r\n--changesetresponse_2--", "\r\n\r\n{\"odata.error\":{\"code\":\"EntityAlreadyExists\",\"message\":{\"lang\":\"en-US\",\"value\":\"1:The specified entity already exists.\"}}}\r\n--changesetresponse_2--", 1)
	answers := []string{strings.ReplaceAll(success, "ETag", "Tag"), answerTo(2), answerTo(4), strings.ReplaceAll(success, "\r\n", "\n"),
		strings.Replace(success, "changesetresponse_2--", "changesetresponse_3--", 1), `{"odata.error":{"code":"InvalidInput"}}`,
		"HTTP/1.1 204", strings.Replace(success, "HTTP/1.1 204", "HTTP/1.1 304", 1)}
	for _, whole := range []string{success, refusal} {
		for end := range len(whole) {
			answers = append(answers, whole[:end+1])
		}
	}
	actions := adds("a", "b", "c")
	for _, answer := range answers {
		w := &wireOf{status: http.StatusAccepted, answer: answer}
		etags, err := Submit(t.Context(), clientOf(t, w, "https://account.table.core.windows.net"), actions)
		fast, fastErr := Submit(t.Context(), prepared(t, w, "https://account.table.core.windows.net"), actions)
		if out, fastOut := azerr.Classify(err), azerr.Classify(fastErr); !slices.Equal(etags, fast) || (err == nil) != (fastErr == nil) || !reflect.DeepEqual(out, fastOut) {
			t.Errorf("of the response\n%s\nthe SDK makes %q, %v (%+v), the policy %q, %v (%+v)", answer, etags, err, out, fast, fastErr, fastOut)
		}
		if err == nil && len(etags) != len(actions) {
			t.Errorf("%d ETags", len(etags))
		}
	}
	w := &wireOf{status: http.StatusAccepted, answer: answerTo(3)}
	if etags, err := Submit(t.Context(), prepared(t, w, "https://account.table.core.windows.net"), actions); err != nil || !slices.Equal(etags, []azcore.ETag{`W/"datetime'0'"`, `W/"datetime'1'"`, `W/"datetime'2'"`}) {
		t.Errorf("%q, %v", etags, err)
	}
}

// TestAStandInIsSentByNoClient: a client without the policy would send it.
func TestAStandInIsSentByNoClient(t *testing.T) {
	for name, client := range map[string]func(w *wireOf) (*aztables.Client, bool){
		"without the policy": func(w *wireOf) (*aztables.Client, bool) {
			return clientOf(t, w, "https://account.table.core.windows.net"), false
		},
		"of Cosmos DB": func(w *wireOf) (*aztables.Client, bool) {
			return clientOf(t, w, "https://account.table.cosmos.azure.com", Policy{}), false
		},
		"with the policy": func(w *wireOf) (*aztables.Client, bool) {
			return clientOf(t, w, "https://account.table.core.windows.net", Policy{}), true
		},
		"with the policy twice": func(w *wireOf) (*aztables.Client, bool) {
			return clientOf(t, w, "https://account.table.core.windows.net", Policy{}, Policy{}), true
		},
	} {
		w := &wireOf{status: http.StatusAccepted, answer: answerTo(1)}
		c, has := client(w)
		for range 3 {
			if etags, err := Submit(t.Context(), c, adds("a")); err != nil || len(etags) != 1 {
				t.Errorf("%s: %q, %v", name, etags, err)
			}
		}
		if hasPolicy(c) != has || len(w.sent) != 3 || slices.ContainsFunc(w.sent, func(s string) bool { return strings.Contains(s, "azconc") || !strings.Contains(s, `"RowKey":"a"`) }) {
			t.Errorf("%s: known %v, sent %q", name, hasPolicy(c), w.sent)
		}
	}
}

// TestAStandInThatIsNotAsExpectedIsNotSent: the body is then the SDK's own.
func TestAStandInThatIsNotAsExpectedIsNotSent(t *testing.T) {
	w := &wireOf{status: http.StatusAccepted, answer: answerTo(1)}
	spoil := policyFunc(func(r *policy.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body())
		if err == nil {
			err = r.SetBody(streaming.NopCloser(bytes.NewReader(bytes.ReplaceAll(body, []byte("PartitionKey='azconc'"), []byte("Partition='azconc'")))), r.Raw().Header.Get("Content-Type"))
		}
		if err != nil {
			return nil, err
		}
		return r.Next()
	})
	client := clientOf(t, w, "https://account.table.core.windows.net", spoil, Policy{})
	learn(client, true)
	if etags, err := Submit(t.Context(), client, adds("a")); err != nil || len(etags) != 1 || len(w.sent) != 1 || !strings.Contains(w.sent[0], `"RowKey":"a"`) || hasPolicy(client) {
		t.Errorf("%q, %v; sent %q", etags, err, w.sent)
	}
	// A client that is wrongly taken for one with the policy: the service refuses the stand-in, and nothing is taken for applied.
	s := aztest.New(nil)
	table := s.Table("orders")
	learn(table, true)
	if etags, err := Submit(t.Context(), table, adds("a")); err != nil || len(etags) != 1 || hasPolicy(table) {
		t.Errorf("%q, %v", etags, err)
	}
}

// TestKeysAreFoundAnywhereInAnEntity: an entity whose keys are not found is sent by the SDK.
func TestKeysAreFoundAnywhereInAnEntity(t *testing.T) {
	for entity, want := range map[string]keys{
		`{"PartitionKey":"p","RowKey":"r"}`:                  {"p", "r"},
		`{"PartitionKey":"p","RowKey":"r\"\u00e9"}`:          {"p", `r"é`},
		`{"PartitionKey":"pé","RowKey":"r"}`:                 {"pé", "r"},
		`{"RowKey":"r","a":{"RowKey":1},"PartitionKey":"p"}`: {"p", "r"},
		`{"PartitionKey":"","RowKey":"r"}`:                   {},
		`{"PartitionKey":"p","rowkey":"r"}`:                  {},
		`{"PartitionKey":"p","RowKey":7}`:                    {},
		`{"PartitionKey":"p","RowKey":"r`:                    {},
	} {
		if k, ok := keysIn([]byte(entity)); ok != (want != keys{}) || ok && k != want {
			t.Errorf("%s: %v, %v", entity, k, ok)
		}
	}
}

// TestASuccessBeforeALostResponseIsNotThatOfTheNextRequest: the SDK sends again if a policy around this one has lost the response.
func TestASuccessBeforeALostResponseIsNotThatOfTheNextRequest(t *testing.T) {
	w := &wireOf{status: http.StatusAccepted, answer: answerTo(1)}
	lose := policyFunc(func(r *policy.Request) (*http.Response, error) {
		response, err := r.Next()
		if err == nil && len(w.sent) == 1 {
			w.answer = w.answer[:len(w.answer)-60]
			return nil, io.ErrUnexpectedEOF
		}
		return response, err
	})
	client := clientOf(t, w, "https://account.table.core.windows.net", lose, Policy{})
	learn(client, true)
	ctx := policy.WithRetryOptions(t.Context(), policy.RetryOptions{MaxRetries: 1, RetryDelay: 1})
	if etags, err := Submit(ctx, client, adds("a")); etags != nil || !azerr.Classify(err).Ambiguous() || len(w.sent) != 2 {
		t.Errorf("%q, %v after %d requests, want the error of a lost response", etags, err, len(w.sent))
	}
}
