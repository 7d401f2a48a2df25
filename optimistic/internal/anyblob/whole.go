package anyblob

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/azerr"
)

// Whole returns a write that replaces a whole blob without having read it.
func Whole(c *protocol.Call, on optimistic.Conditions, client *blob.Client) protocol.Change {
	w := protocol.Change{Look: func(ctx context.Context) (protocol.State, error) { return Look(ctx, client) }}
	if !c.S.NoLineage {
		w.ID, w.Traced = protocol.NewWriteID(), true
	}
	w.Base, w.AnyBase = BaseIn(on)
	return w
}

// BaseIn returns the base that conditions name: a version, absence, or any.
func BaseIn(on optimistic.Conditions) (base protocol.State, any bool) {
	if on.IfMatch != "" && on.IfMatch != azcore.ETagAny {
		return protocol.State{Exists: true, ETag: on.IfMatch}, false
	}
	return base, on.IfNoneMatch != azcore.ETagAny
}

// Preview looks at the blob that w is to replace, and reports whether there is one. It avoids sending the content of a
// write that would fail, refuses a blob of another type than want, and reads the lineage that w carries on. It decides
// nothing: the write still has its condition. So a caller that may not read the blob writes it unseen, as one that has
// not read its lineage; it is taken for one that exists.
func Preview(ctx context.Context, c *protocol.Call, w protocol.Change, client *blob.Client, want blob.BlobType) (protocol.Change, bool, error) {
	var kind *blob.BlobType
	now, err := c.Look(ctx, func(ctx context.Context) (protocol.State, error) {
		props, err := Properties(ctx, client)
		kind = props.BlobType
		return StateOf(props, err)
	})
	if Unreadable(err) {
		return w, true, nil
	}
	if err != nil {
		return w, false, c.Fail(err)
	}
	if !w.AnyBase && (now.Exists != w.Base.Exists || now.ETag != w.Base.ETag) {
		err := c.Observed(&optimistic.ConflictError{
			Op: c.Op, Resource: c.Resource, Reason: azerr.Changed, Base: w.Base.ETag, Attempts: 1, Elapsed: time.Since(c.Began),
		}, w, now)
		c.Preempted(ctx, err)
		return w, now.Exists, err
	}
	if err := CheckType(kind, want); err != nil {
		return w, now.Exists, c.Fail(err)
	}
	if !w.AnyBase {
		w.Base = now
	}
	return w, now.Exists, nil
}

// Unreadable reports whether a read was refused because the caller lacks the right to read, though not perhaps that to write.
func Unreadable(err error) bool { return azerr.Has(err, "AuthorizationPermissionMismatch") }

// MetadataOf returns the caller's metadata with the lineage of w.
func MetadataOf(c *protocol.Call, w protocol.Change, own map[string]string) (map[string]*string, error) {
	base := w.Base
	if w.AnyBase {
		base = protocol.State{ETag: protocol.UnknownBase}
	}
	_, lineage := c.StampAs(w.ID, base, protocol.Intent{}, 0)
	raw, _, err := meta.Join(meta.Merge(nil, own), lineage)
	return raw, err
}
