package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

// plant is a deliberate mistake in the workload, to see that the judge convicts it. Several are separated by commas.
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

var plants = []string{plainRetry, noFence, noMarkers, noRelease, noSend, noIfMatch, grow}

func (p plant) has(one string) bool { return slices.Contains(strings.Split(string(p), ","), one) }

func (p plant) check() error {
	for one := range strings.SplitSeq(string(p), ",") {
		if one != "" && !slices.Contains(plants, one) {
			return fmt.Errorf("--plant: %q is none of %s", one, strings.Join(plants, ", "))
		}
	}
	return nil
}

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
