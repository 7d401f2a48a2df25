package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/optimistic"
)

// plant is a deliberate mistake in the workload, which a test plants to see that the judge convicts it. Several are separated by commas.
type plant string

// The mistakes.
const (
	plainRetry = "plain-retry" // counts with the usual loop around the SDK, and with the SDK's retries
	noFence    = "no-fence"    // writes under a lock without its fence
	noMarkers  = "no-markers"  // handles messages without looking for copies
	noRelease  = "no-release"  // leases blobs for ever, and forgets them
	noSend     = "no-send"     // says that a message was sent, and does not send it
	noIfMatch  = "no-if-match" // writes blobs without their condition
	grow       = "grow"        // keeps a goroutine and a mebibyte of each update
)

func (p plant) has(one string) bool { return slices.Contains(strings.Split(string(p), ","), one) }

// unconditional takes If-Match from each request. The SDK does not write names of headers in their usual case.
type unconditional struct{}

func (unconditional) Do(r *policy.Request) (*http.Response, error) {
	for name := range r.Raw().Header {
		if strings.EqualFold(name, "If-Match") {
			delete(r.Raw().Header, name)
		}
	}
	return r.Next()
}

// leaseForEver is what a holder does that crashes with an infinite lease.
func leaseForEver(ctx context.Context, client *blockblob.Client) {
	l, err := lease.NewBlobClient(client, nil)
	must(err)
	_, _ = l.AcquireLease(ctx, -1, nil)
}

func content(s string) io.ReadSeekCloser { return streaming.NopCloser(strings.NewReader(s)) }

// plainLoop is what many programs do: read, change, write with If-Match, start over on 412, and leave the rest to the
// SDK's retries. It applies a change again when a response was lost.
func plainLoop(ctx context.Context, client *blockblob.Client, change func(context.Context, *tally) error) error {
	ctx = policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: 5, RetryDelay: 20 * time.Millisecond, MaxRetryDelay: 200 * time.Millisecond})
	for range 50 {
		resp, err := client.DownloadStream(ctx, nil)
		if err != nil {
			return err
		}
		data, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		var t tally
		if err == nil {
			err = json.Unmarshal(data, &t)
		}
		if err == nil {
			err = change(ctx, &t)
		}
		if err != nil {
			return err
		}
		data, err = json.Marshal(t)
		if err != nil {
			return err
		}
		_, err = client.Upload(ctx, content(string(data)), &blockblob.UploadOptions{Metadata: resp.Metadata, AccessConditions: &blob.AccessConditions{
			ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: resp.ETag}}})
		if !bloberror.HasCode(err, bloberror.ConditionNotMet) {
			return err
		}
	}
	return optimistic.ErrConflict
}
