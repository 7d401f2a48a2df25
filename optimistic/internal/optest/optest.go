// Package optest has the helpers that the tests of package optimistic and of the packages below it share: values to
// count in, a service without faults, history recorders, and queues.
package optest

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

// Counter is the value that most tests change.
type Counter struct {
	N int `json:"n"`
}

// Increment is a change that adds 1.
func Increment(_ context.Context, c *Counter) error {
	c.N++
	return nil
}

// Put stores content without azconc, as a foreign writer does: the lineage and all metadata are gone.
func Put(t *testing.T, client *blockblob.Client, content string) azcore.ETag {
	t.Helper()
	resp, err := client.Upload(context.Background(), Body(content), nil)
	if err != nil {
		t.Fatalf("put: %v", err)
	}
	return *resp.ETag
}

// Get returns the content of the blob.
func Get(t *testing.T, client *blockblob.Client) string {
	t.Helper()
	resp, err := client.DownloadStream(context.Background(), nil)
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	return string(data)
}

// Count returns the value of the Counter in the blob.
func Count(t *testing.T, client *blockblob.Client) int {
	t.Helper()
	var c Counter
	if err := json.Unmarshal([]byte(Get(t, client)), &c); err != nil {
		t.Fatal(err)
	}
	return c.N
}

// ETagOf returns the ETag of the blob.
func ETagOf(t *testing.T, client *blockblob.Client) azcore.ETag {
	t.Helper()
	resp, err := client.GetProperties(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return *resp.ETag
}

// Quiet returns a service without faults, with the blob box/n.json if content is not empty.
func Quiet(t *testing.T, content string) (*aztest.Service, *blockblob.Client) {
	t.Helper()
	s := aztest.New(nil)
	client := s.BlockBlob("box", "n.json")
	if content != "" {
		Put(t, client, content)
	}
	s.Reset()
	return s, client
}

// Requests checks that a call sent exactly want requests, and reported them.
func Requests(t *testing.T, s *aztest.Service, res optimistic.Result, want int) {
	t.Helper()
	if res.Requests != want || s.Requests() != want {
		t.Errorf("reported %d requests, sent %d, want %d:\n%v", res.Requests, s.Requests(), want, s.Log())
	}
}

// Body returns content as the body of a request.
func Body(content string) io.ReadSeekCloser { return streaming.NopCloser(strings.NewReader(content)) }

// Every returns the faults that every write is tested with.
func Every(match func(*aztest.Request) bool) map[string]aztest.Fault {
	return map[string]aztest.Fault{
		"refused":             {Kind: aztest.Refuse, Match: match, Count: 1},
		"slow":                {Kind: aztest.Slow, Match: match, Count: 1, Delay: 5 * time.Second},
		"slower than a try":   {Kind: aztest.Slow, Match: match, Count: 1, Delay: 40 * time.Second},
		"throttled":           {Kind: aztest.Throttle, Match: match, Count: 2, RetryAfter: 3 * time.Second},
		"500 after commit":    {Kind: aztest.FailAfterCommit, Match: match, Count: 1},
		"503 after commit":    {Kind: aztest.FailAfterCommit, Match: match, Count: 1, Status: 503, Code: "InternalError"},
		"response lost":       {Kind: aztest.LoseAnswer, Match: match, Count: 1},
		"response lost twice": {Kind: aztest.LoseAnswer, Match: match, Count: 2},
		"request lost":        {Kind: aztest.LoseRequest, Match: match, Count: 1},
		"delivered twice":     {Kind: aztest.AnswerTwice, Match: match, Count: 1},
		"delayed commit":      {Kind: aztest.DelayCommit, Match: match, Count: 1, Delay: 50 * time.Millisecond},
		"late commit":         {Kind: aztest.DelayCommit, Match: match, Count: 1, Delay: time.Hour},
		"hanging":             {Kind: aztest.Hang, Match: match, Count: 1},

		"broken, then carried out":       {Kind: aztest.CommitAfterBreak, Match: match, Count: 1},
		"broken, carried out a bit late": {Kind: aztest.CommitAfterBreak, Match: match, Count: 1, Delay: 50 * time.Millisecond},
		"broken, carried out very late":  {Kind: aztest.CommitAfterBreak, Match: match, Count: 1, Delay: time.Hour},
		"response cut":                   {Kind: aztest.CutAnswer, Match: match, Count: 1},
		"response without a length":      {Kind: aztest.Rechunk, Match: match, Count: 1},
		"login page with 200":            {Kind: aztest.Page, Match: match, Count: 1},
		"login page with 201":            {Kind: aztest.Page, Match: match, Count: 1, Status: 201},
		"login page with 202":            {Kind: aztest.Page, Match: match, Count: 1, Status: 202},
		"login page with 204":            {Kind: aztest.Page, Match: match, Count: 1, Status: 204},
		"page with 502":                  {Kind: aztest.Page, Match: match, Count: 1, Status: 502},
		"page with 504 after commit":     {Kind: aztest.PageAfterCommit, Match: match, Count: 1},
		"login page after commit":        {Kind: aztest.PageAfterCommit, Match: match, Count: 1, Status: 201},
	}
}

// Recreate is for tests of creates whose outcome is known, because no other client deletes the resource.
var Recreate = optimistic.SendOptions{Recreate: true}
