package blobs

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/ptr"
)

// DeleteOptions tunes Delete. The zero value deletes whatever version is there, if it has no snapshots.
type DeleteOptions struct {
	// Conditions must hold for the blob to be deleted. Defaults to none.
	Conditions optimistic.Conditions

	// Snapshots deletes the blob's snapshots too. Without it, a blob with snapshots is not deleted (409
	// SnapshotsPresent). Defaults to false.
	Snapshots bool

	optimistic.SendOptions

	_ struct{}
}

// Delete deletes a blob of any type, or the snapshot or version that the client names. It is optimistic.Delete with all
// the conditions that the service has. A deletion leaves no trace of who requested it. If the response is lost and the blob
// is gone, a deletion with any condition is ErrOutcomeUnknown, because another client may have deleted it; one without has
// succeeded. Other errors are those of optimistic.Delete.
//
// Cost: 1 request; 2 on a conflict, for the ETag found; after a lost response 1 for each look. Safe for concurrent use.
func Delete(ctx context.Context, client *blob.Client, opts *DeleteOptions) (optimistic.Result, error) {
	if err := sealed.NotNil("delete", "client", client); err != nil {
		return optimistic.Result{}, err
	}
	o := ptr.Value(opts)
	if err := o.Conditions.Validate(); err != nil {
		return optimistic.Result{}, err
	}
	c := o.Conditions
	d := &deletion{metadataTarget: metadataTarget{NewMetadata(client)}, o: o}
	r, err := optimistic.Delete(ctx, d, optimistic.State{ETag: c.IfMatch}, &optimistic.WriteOptions{
		Conditions: optimistic.Conditions{IfTags: c.IfTags, LeaseID: c.LeaseID}, SendOptions: o.SendOptions,
	})
	c.LeaseID = "" // who holds the lease knows what becomes of the blob
	if err == nil && !d.confirmed && c != (optimistic.Conditions{}) {
		err = &optimistic.UnknownError{
			Op: "delete", Resource: d.Resource(), Why: "the response was lost and the blob is gone: another client may have deleted it", Elapsed: r.Elapsed,
		}
	}
	return r, err
}

// deletion is a target whose deletion carries all conditions, and that records whether a response confirmed it.
type deletion struct {
	metadataTarget
	o         DeleteOptions
	confirmed bool
}

// Remove implements Target: one Delete Blob.
func (d *deletion) Remove(base protocol.State, _ sealed.Conditions) (protocol.Write, error) {
	all := d.o.Conditions
	// A repetition after a lost response names the version that was found, unless other conditions depend on it.
	if base.ETag != "" && all.IfNoneMatch == "" && all.IfModifiedSince.IsZero() && all.IfUnmodifiedSince.IsZero() {
		all.IfMatch = base.ETag
	}
	opts := blob.DeleteOptions{AccessConditions: anyblob.AccessConditions(all)}
	if d.o.Snapshots {
		opts.DeleteSnapshots = ptr.Optional(blob.DeleteSnapshotsOptionTypeInclude)
	}
	send := removeBlob(d.Client, opts)
	return func(ctx context.Context) (azcore.ETag, error) {
		_, err := send(ctx)
		d.confirmed = err == nil
		return "", err
	}, nil
}
