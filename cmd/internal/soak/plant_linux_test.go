package soak

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

// plant is a deliberate mistake in the workload, which a test plants to see that the judge convicts it. Several are separated by commas.
type plant string

// The mistakes.
const (
	noFence   = "no-fence"    // writes under a lock without its fence
	noMarkers = "no-markers"  // handles messages without looking for copies
	noRelease = "no-release"  // leases blobs for ever, and forgets them
	noSend    = "no-send"     // says that a message was sent, and does not send it
	noIfMatch = "no-if-match" // writes blobs without their condition
)

func (p plant) has(one string) bool { return slices.Contains(strings.Split(string(p), ","), one) }

// unconditional takes If-Match from each request.
type unconditional struct{}

func (unconditional) Do(r *policy.Request) (*http.Response, error) {
	r.Raw().Header.Del("If-Match")
	return r.Next()
}

// leaseForEver is what a holder does that crashes with an infinite lease. The blob need not exist.
func leaseForEver(ctx context.Context, client *blockblob.Client) {
	_, _ = client.UploadBuffer(ctx, nil, nil)
	l, err := lease.NewBlobClient(client, nil)
	must(err)
	_, _ = l.AcquireLease(ctx, -1, nil)
}
