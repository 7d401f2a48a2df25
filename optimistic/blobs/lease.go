package blobs

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/optimistic"
)

// shortestLease is the duration of the lease of an escalated update, in seconds: the shortest that the service allows.
const shortestLease = 15

// blobLease is a lease of a blob for an escalated update.
type blobLease struct{ client *lease.BlobClient }

func (l blobLease) Acquire(ctx context.Context) error {
	_, err := l.client.AcquireLease(ctx, shortestLease, nil)
	return err
}

func (l blobLease) Release(ctx context.Context) error {
	_, err := l.client.ReleaseLease(ctx, nil)
	return err
}

// leaseOn returns the Lease function of the blob's Traits.
func leaseOn(client *blob.Client) func(id string) (optimistic.Lease, error) {
	return func(id string) (optimistic.Lease, error) {
		c, err := lease.NewBlobClient(client, &lease.BlobClientOptions{LeaseID: &id})
		return blobLease{c}, err
	}
}
