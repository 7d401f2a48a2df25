package aztest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/aztest"
)

// verbTargets are the resources of verbAccount, and the query that reads each.
var verbTargets = []struct{ name, at, with, read string }{
	{"container", "blob:/box", "restype=container", ""},
	{"blob", "blob:/box/blob", "", ""},
	{"share", "file:/reports", "restype=share", ""},
	{"directory", "file:/reports/dir", "restype=directory", ""},
	{"file", "file:/reports/file", "", ""},
	{"queue", "queue:/orders", "", "comp=metadata"},
	{"messages", "queue:/orders/messages", "", "peekonly=true"},
	{"table", "table:/Jobs", "", ""},
	{"entity", "table:/Jobs(PartitionKey='p',RowKey='r')", "", ""},
}

// verbAccount returns a service with one resource of each kind.
func verbAccount(t *testing.T) *aztest.Service {
	t.Helper()
	s := aztest.New(&aztest.Options{VerifySignatures: true})
	ctx := t.Context()
	_, err := s.BlockBlob("box", "blob").UploadBuffer(ctx, []byte("content"), nil)
	if err == nil {
		_, err = s.File("reports", "file").Create(ctx, 4, nil)
	}
	if err == nil {
		_, err = s.Share("reports").NewDirectoryClient("dir").Create(ctx, nil)
	}
	if err == nil {
		_, err = s.Queue("orders").EnqueueMessage(ctx, "m", nil)
	}
	if err == nil {
		_, err = s.Table("Jobs").AddEntity(ctx, []byte(`{"PartitionKey":"p","RowKey":"r","n":1}`), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// verbURL returns the URL of a target.
func verbURL(s *aztest.Service, at string, query ...string) string {
	service, path, _ := strings.Cut(at, ":")
	base := map[string]string{"blob": s.BlobURL(), "file": s.FileURL(), "queue": s.QueueURL(), "table": s.TableURL()}[service]
	return base + path + "?" + strings.Join(query, "&")
}

// verbState is all that requests with the key read of the account.
func verbState(t *testing.T, s *aztest.Service, full string) string {
	t.Helper()
	var b strings.Builder
	for _, on := range verbTargets {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, verbURL(s, on.at, on.with, on.read, full), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "application/json")
		got, err := s.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = got.Body.Close()
		fmt.Fprintln(&b, on.name, got.StatusCode, got.Header.Get("ETag"), got.Header.Get("Content-Length"), got.Header.Get("x-ms-lease-state"), got.Header.Get("x-ms-meta-a"))
	}
	return b.String()
}

// TestASASThatReadsChangesNothing, whatever the verb: an operation has its permissions by its name, and is carried out by its verb, which
// were at odds. DELETE with comp=metadata needed to read the metadata only, and deleted the container, share or queue.
func TestASASThatReadsChangesNothing(t *testing.T) {
	reads, full := accountSAS(t, "bqtf", "sco", "rl", time.Now().Add(hour)), accountSAS(t, "bqtf", "sco", "rwdlacup", time.Now().Add(hour))
	s := verbAccount(t)
	before := verbState(t, s, full)
	if strings.Contains(before, " 40") {
		t.Fatal(before)
	}
	for _, on := range verbTargets {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete, "MERGE", "OTHER"} {
			for _, comp := range []string{"", "metadata", "acl", "lease", "properties", "list", "range", "rangelist", "page", "block", "snapshot", "tags", "forceclosehandles", "undelete"} {
				status, code, _ := send(t, s, method, verbURL(s, on.at, on.with, "comp="+comp, reads), "x-ms-meta-a", "b", "x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1",
					"x-ms-content-length", "9", "x-ms-type", "file", "x-ms-blob-type", "BlockBlob", "x-ms-write", "clear", "x-ms-range", "bytes=0-1", "If-Match", string(azcore.ETagAny))
				if after := verbState(t, s, full); after != before {
					t.Errorf("%s of a %s with comp=%s: %d %s, and it has become\n%s", method, on.name, comp, status, code, after)
					s = verbAccount(t)
					before = verbState(t, s, full)
				}
			}
		}
	}
}
