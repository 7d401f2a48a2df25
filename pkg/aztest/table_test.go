package aztest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func newEntity(partition, row string) []byte {
	return []byte(`{"PartitionKey":"` + partition + `","RowKey":"` + row + `","n":1}`)
}

func TestATableIsBeingDeletedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil)
		client := s.Table("orders")
		if _, err := client.AddEntity(t.Context(), newEntity("p", "r"), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Delete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		_, err := client.CreateTable(t.Context(), nil)
		if refused, ok := errors.AsType[*azcore.ResponseError](err); !ok || refused.ErrorCode != "TableBeingDeleted" {
			t.Fatalf("create at once: %v", err)
		}
		bubble.Sleep(31 * time.Second)
		if _, err := client.CreateTable(t.Context(), nil); err != nil {
			t.Errorf("create after a while: %v", err)
		}
		if _, err := client.GetEntity(t.Context(), "p", "r", nil); err == nil {
			t.Error("the new table holds the old one's entity")
		}
	})
}

// TestETagsDifferThoughTimeStandsStill: the ETag is made of the Timestamp, and in a bubble time does not pass.
func TestETagsDifferThoughTimeStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := New(nil).Table("orders")
		seen := map[azcore.ETag]bool{}
		for range 100 {
			r, err := client.UpsertEntity(t.Context(), newEntity("p", "r"), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
			if err != nil || seen[r.ETag] || strings.Contains(string(r.ETag), "%3A%3A") {
				t.Fatalf("ETag %s, %v", r.ETag, err)
			}
			seen[r.ETag] = true
		}
	})
}

func TestTheLogNamesTableOperations(t *testing.T) {
	s := New(nil)
	client, service := s.Table("orders"), s.TableService()
	ctx, any := t.Context(), azcore.ETagAny
	_, _ = service.CreateTable(ctx, "other", nil)
	_, _ = service.NewListTablesPager(nil).NextPage(ctx)
	_, _ = client.AddEntity(ctx, newEntity("p", "r"), nil)
	_, _ = client.AddEntity(ctx, newEntity("p", "r"), nil)
	_, _ = client.GetEntity(ctx, "p", "r", nil)
	_, _ = client.UpdateEntity(ctx, newEntity("p", "r"), &aztables.UpdateEntityOptions{IfMatch: &any, UpdateMode: aztables.UpdateModeMerge})
	_, _ = client.UpdateEntity(ctx, newEntity("p", "r"), &aztables.UpdateEntityOptions{IfMatch: &any, UpdateMode: aztables.UpdateModeReplace})
	_, _ = client.UpsertEntity(ctx, newEntity("p", "r"), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeMerge})
	_, _ = client.UpsertEntity(ctx, newEntity("p", "r"), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
	_, _ = client.NewListEntitiesPager(nil).NextPage(ctx)
	_, _ = client.SubmitTransaction(ctx, []aztables.TransactionAction{{ActionType: aztables.TransactionTypeAdd, Entity: newEntity("p", "s")}}, nil)
	_, _ = client.DeleteEntity(ctx, "p", "r", nil)
	_, _ = client.GetAccessPolicy(ctx, nil)
	_, _ = client.SetAccessPolicy(ctx, nil)
	_, _ = service.GetProperties(ctx, nil)
	_, _ = service.DeleteTable(ctx, "other", nil)
	want := []string{
		"Create Table : 201", "Query Tables : 200", "Insert Entity orders: 201", "Insert Entity orders: 409 EntityAlreadyExists",
		"Query Entities orders/p/r: 200", "Merge Entity orders/p/r: 204", "Update Entity orders/p/r: 204",
		"Insert Or Merge Entity orders/p/r: 204", "Insert Or Replace Entity orders/p/r: 204", "Query Entities orders: 200",
		"Entity Group Transaction : 202", "Delete Entity orders/p/r: 204", "Get Table ACL orders: 200", "Set Table ACL orders: 204",
		"Get Table Service Properties : 200", "Delete Table other: 204",
	}
	log := s.Log()
	if len(log) != len(want) {
		t.Fatalf("%d requests, want %d: %v", len(log), len(want), log)
	}
	for i, r := range log {
		if r.String() != want[i] {
			t.Errorf("request %d: %s, want %s", i, r, want[i])
		}
	}
}

func TestFaultsMeetTableOperations(t *testing.T) {
	s := New(nil)
	client := s.Table("orders")
	once := policy.WithRetryOptions(t.Context(), policy.RetryOptions{MaxRetries: -1})
	s.SetFaults(Fault{Kind: LoseAnswer, Match: Op("Insert Entity")})
	if _, err := client.AddEntity(once, newEntity("p", "r"), nil); err == nil {
		t.Fatal("the answer was not lost")
	}
	s.SetFaults()
	if _, err := client.GetEntity(t.Context(), "p", "r", nil); err != nil {
		t.Errorf("the insert whose answer was lost was not carried out: %v", err)
	}
}

func TestTablesAreServedOverHTTP(t *testing.T) {
	s := New(nil)
	server := httptest.NewServer(s.TableHandler())
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	credential, err := aztables.NewSharedKeyCredential(Account, Key)
	if err != nil {
		t.Fatal(err)
	}
	service, err := aztables.NewServiceClientWithSharedKey(server.URL+"/"+Account, credential,
		&aztables.ClientOptions{ClientOptions: policy.ClientOptions{Transport: &http.Client{Transport: transport}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service.CreateTable(t.Context(), "orders", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := service.NewClient("orders").AddEntity(t.Context(), newEntity("o'b", "a b%c"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := service.NewClient("orders").GetEntity(t.Context(), "o'b", "a b%c", nil); err != nil {
		t.Error(err)
	}
}

// TestABatchThatIsNoneIsRefused: the answer is one error, not an answer with errors inside.
func TestABatchThatIsNoneIsRefused(t *testing.T) {
	s := New(nil)
	s.Table("orders")
	send := func(contentType, body string) (int, string) {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.TableURL()+"/$batch", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "SharedKeyLite devstoreaccount1:x")
		r.Header.Set("Content-Type", contentType)
		response, err := s.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(text)
	}
	for _, tt := range []struct{ contentType, body string }{
		{"application/json", "{}"}, {"multipart/mixed; boundary=b", ""}, {"multipart/mixed; boundary=b", "--b\r\nContent-Type: text/plain\r\n\r\nx\r\n--b--\r\n"},
		{"multipart/mixed; boundary=b", "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\nPUT\r\n--c--\r\n--b--\r\n"},
	} {
		if status, text := send(tt.contentType, tt.body); status != http.StatusBadRequest || !strings.Contains(text, `"InvalidInput"`) {
			t.Errorf("%q: %d %s", tt.body, status, text)
		}
	}
	if status, text := send("multipart/mixed; boundary=b", strings.Repeat("x", 4<<20+1)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("4 MiB and a byte: %d %s", status, text)
	}
}
