package replay

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/azconc/azconc/pkg/aztest"
)

// TestTheReplayConvictsAServiceThatLies falsifies the responses, in one way at a time, and requires that the comparison
// finds it.
func TestTheReplayConvictsAServiceThatLies(t *testing.T) {
	once := map[string]string{} // the first value that a lie has seen
	for _, tt := range []struct {
		name, service, scenario string
		lie                     func(r *http.Request, a *http.Response)
		finds                   string
	}{
		{"a status", "blob", "test_blob_access_conditions.test_put_blob_with_if_match", func(_ *http.Request, a *http.Response) {
			if a.StatusCode == http.StatusCreated {
				a.StatusCode = http.StatusOK
			}
		}, "answered 200"},
		{"a code", "blob", "test_common_blob.test_lease_blob_break_period", func(_ *http.Request, a *http.Response) {
			if a.Header.Get("x-ms-error-code") == "LeaseLost" {
				a.Header.Set("x-ms-error-code", "LeaseNotPresentWithBlobOperation")
			}
		}, "the service 412 LeaseLost"},
		{"a missing header", "blob", "test_blob_access_conditions.test_get_blob_properties_with_if_match", func(r *http.Request, a *http.Response) {
			if r.Method == http.MethodHead {
				a.Header.Del("x-ms-creation-time")
			}
		}, "no header x-ms-creation-time"},
		{"another header", "blob", "test_blob_access_conditions.test_put_blob_with_if_match", func(_ *http.Request, a *http.Response) {
			a.Header.Set("x-ms-surprise", "1")
		}, "which the service does not send"},
		{"a lease state", "blob", "test_common_blob.test_get_blob_properties_with_leased_blob", func(_ *http.Request, a *http.Response) {
			if a.Header.Get("x-ms-lease-state") != "" {
				a.Header.Set("x-ms-lease-state", "available")
			}
		}, "x-ms-lease-state"},
		{"an ETag that a lease moves", "blob", "test_common_blob.test_lease_blob_acquire_and_renew", func(r *http.Request, a *http.Response) {
			if r.URL.Query().Get("comp") == "lease" {
				a.Header.Set("ETag", `"0xMOVED`+r.Header.Get("x-ms-lease-action")+`"`)
			}
		}, "is new, the service's"},
		{"an ETag that a write leaves", "blob", "test_blob_access_conditions.test_set_blob_metadata_with_if_match", func(_ *http.Request, a *http.Response) {
			if etag := a.Header.Get("ETag"); etag != "" {
				if once["etag"] == "" {
					once["etag"] = etag
				}
				a.Header.Set("ETag", once["etag"])
			}
		}, "is not new, the service's"},
		{"a receipt for each message", "queue", "test_queue.test_get_messages_with_options", func(r *http.Request, a *http.Response) {
			if r.Method != http.MethodGet {
				return
			}
			rewrite(a, func(text string) string {
				var b strings.Builder
				for i, part := range strings.Split(text, "<PopReceipt>") {
					if i > 0 {
						b.WriteString("<PopReceipt>" + strings.Repeat("x", i))
					}
					b.WriteString(part)
				}
				return b.String()
			})
		}, "is new, the service's"},
		{"a message that is missing", "queue", "test_queue.test_get_messages_with_options", func(_ *http.Request, a *http.Response) {
			rewrite(a, func(text string) string {
				from := strings.LastIndex(text, "<QueueMessage>")
				to := strings.LastIndex(text, "</QueueMessage>")
				if from < 0 || strings.Count(text, "<QueueMessage>") < 2 {
					return text
				}
				return text[:from] + text[to+len("</QueueMessage>"):]
			})
		}, "shows"},
		{"a status inside a transaction", "table", "test_table_batch.test_batch_update_if_doesnt_match", func(_ *http.Request, a *http.Response) {
			rewrite(a, func(text string) string {
				return strings.ReplaceAll(text, "HTTP/1.1 412", "HTTP/1.1 409")
			})
		}, "shows"},
		{"content that is too short", "blob", "test_common_blob.test_get_blob_with_existing_blob", func(r *http.Request, a *http.Response) {
			if r.Method == http.MethodGet {
				rewrite(a, func(text string) string { return text[1:] })
			}
		}, "a body of"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var found []string
			replayed := false
			for _, s := range facts(t, tt.service) {
				if s.Name != tt.scenario {
					continue
				}
				replayed = true
				inMemory(t, s, func(r *http.Request, memory *aztest.Service) (*http.Response, error) {
					a, err := memory.Do(r)
					if err == nil {
						tt.lie(r, a)
					}
					return a, err
				}, func(_ int, _ Step, differences []string) { found = append(found, differences...) })
			}
			if !replayed || !strings.Contains(strings.Join(found, "\n"), tt.finds) {
				t.Errorf("replayed %t, found %q, want one with %q", replayed, found, tt.finds)
			}
		})
	}
}

func rewrite(a *http.Response, change func(string) string) {
	body, err := io.ReadAll(a.Body)
	if err != nil {
		panic(err)
	}
	if len(body) > 0 {
		body = []byte(change(string(body)))
	}
	a.Body = io.NopCloser(bytes.NewReader(body))
}
