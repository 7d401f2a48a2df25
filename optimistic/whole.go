package optimistic

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/pkg/azerr"
)

// whole returns a write that replaces a whole blob and has not read what was there before.
func whole(c *call, on Conditions, client *blob.Client, cpk *blob.CPKInfo) write {
	w := write{look: func(ctx context.Context) (State, error) { return lookAtBlob(ctx, client, cpk) }}
	if c.s.LineageSize >= 0 {
		w.id, w.traced = newWriteID(c.writer), true
	}
	switch {
	case on.IfMatch != "" && on.IfMatch != azcore.ETagAny:
		w.base = State{Exists: true, ETag: on.IfMatch}
	case on.IfNoneMatch == azcore.ETagAny:
	default:
		w.anyBase = true
	}
	return w
}

// preview looks at the blob that w is to replace, and reports whether there is one. It avoids sending the content of a
// write that would fail, refuses a blob of another type than want, and reads the lineage that w carries on. It decides
// nothing: the write still has its condition.
func preview(ctx context.Context, c *call, w write, client *blob.Client, cpk *blob.CPKInfo, want blob.BlobType) (write, bool, error) {
	var kind *blob.BlobType
	now, err := c.look(ctx, func(ctx context.Context) (State, error) {
		props, err := blobProperties(ctx, client, cpk)
		kind = props.BlobType
		return stateOf(props, err)
	})
	if err != nil {
		return w, false, c.fail(err)
	}
	if !w.anyBase && (now.Exists != w.base.Exists || now.ETag != w.base.ETag) {
		c.res.Conflicts++
		return w, now.Exists, c.observed(&ConflictError{
			Op: c.op, Resource: c.resource, Reason: azerr.Changed, Base: w.base.ETag, Attempts: 1, Elapsed: time.Since(c.began),
		}, w, now)
	}
	if err := checkType(kind, want); err != nil {
		return w, now.Exists, c.fail(err)
	}
	if !w.anyBase {
		w.base = now
	}
	return w, now.Exists, nil
}

// metadataOf returns the caller's metadata with the lineage of w.
func metadataOf(c *call, w write, own map[string]string) (map[string]*string, error) {
	base := w.base
	if w.anyBase {
		base = State{ETag: unknownBase}
	}
	_, lineage := c.stampAs(w.id, base, intent{})
	return joinMetadata(mergeMetadata(nil, own), lineage)
}
