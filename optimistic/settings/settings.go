package settings

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
)

// QueueMetadata is the user metadata of a queue as a Target, made by NewLastWriterWinsQueueMetadata. The queue must exist.
//
// Last writer wins: the service has no version of a queue and supports no condition (REST: "Set Queue Metadata"). A
// write replaces all metadata, including changes by others since the read, and two concurrent writers can both succeed
// although only one change is left. Use it if the queue has one writer, or if lost changes do not matter.
//
// azconc stores the lineage in the metadata. The lineage resolves lost responses, so a change is not run again on its
// own result. Before a write is sent again, azconc looks whether another writer has written meanwhile, and then reports
// a conflict (Update runs the change again) instead of overwriting. A delayed request may still be applied later, over
// any other write.
//
// azconc computes Version.ETag from the metadata. It can be used for IfMatch only here, and is compared when the
// metadata are read, not when they are written. IfTags and LeaseID are refused.
//
// Cost: 1 request to read, 1 to write.
type QueueMetadata struct{ queue *azqueue.QueueClient }

// NewLastWriterWinsQueueMetadata returns the user metadata of a queue as a Target. The name warns of lost changes: see
// QueueMetadata.
func NewLastWriterWinsQueueMetadata(client *azqueue.QueueClient) QueueMetadata {
	return QueueMetadata{client}
}

// Resource implements Target.
func (m QueueMetadata) Resource() string { return resource.Path(m.queue.URL()) }

// Traits describes the target to the calls of package optimistic.
func (m QueueMetadata) Traits() optimistic.Traits { return optimistic.Traits{Client: m.queue} }

// Read implements Target: one Get Queue Metadata.
func (m QueueMetadata) Read(ctx context.Context) (*optimistic.Version[map[string]string], error) {
	optimistic.CountRequest(ctx)
	resp, err := m.queue.GetProperties(ctx, nil)
	if azerr.Has(err, "QueueNotFound") {
		return &optimistic.Version[map[string]string]{}, nil
	}
	if err != nil {
		return nil, err
	}
	v := &optimistic.Version[map[string]string]{State: optimistic.State{Exists: true}}
	v.Value, v.Lineage = meta.Split(resp.Metadata)
	if v.ETag, err = settingsTag(v.Value, v.Lineage); err != nil {
		return nil, err
	}
	v.Carry = maps.Clone(v.Value)
	return v, nil
}

// Look implements Target: one Get Queue Metadata.
func (m QueueMetadata) Look(ctx context.Context) (optimistic.State, error) {
	return stateOf(m.Read(ctx))
}

// stateOf returns the state that a read found.
func stateOf[T any](v *optimistic.Version[T], err error) (optimistic.State, error) {
	if err != nil {
		return optimistic.State{}, err
	}
	return v.State, nil
}

// Prepare implements Target: one Set Queue Metadata.
func (m QueueMetadata) Prepare(base *optimistic.Version[map[string]string], value map[string]string, lineage optimistic.Lineage, c optimistic.Conditions) (optimistic.Write, error) {
	if err := plainSetting(base.Exists, c); err != nil {
		return nil, err
	}
	before, _ := base.Carry.(map[string]string)
	value, metadata, err := meta.Changed(base.State, before, value, lineage)
	if metadata == nil || err != nil {
		return nil, err
	}
	_, kept := meta.Split(metadata) // it may have been shortened
	produced, err := settingsTag(value, kept)
	if err != nil {
		return nil, err
	}
	return protocol.LookFirst(func(ctx context.Context) (azcore.ETag, error) {
		optimistic.CountRequest(ctx)
		_, err := m.queue.SetMetadata(ctx, &azqueue.SetMetadataOptions{Metadata: metadata})
		return produced, err
	}, base.State, produced, m.Look), nil
}

// Remove implements Target: it refuses, because metadata is deleted only with its queue.
func (m QueueMetadata) Remove(optimistic.State, optimistic.Conditions) (optimistic.Write, error) {
	return nil, errors.New("metadata cannot be deleted by itself: update it to an empty map, or delete the queue")
}

// settingsTag computes a version for settings to which the service gives none. Equal settings have equal versions.
func settingsTag(settings any, lineage optimistic.Lineage) (azcore.ETag, error) {
	text, err := json.Marshal(settings)
	if err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	sum := sha256.Sum256(append(text, lineage.String()+lineage.OperationsString()...))
	return azcore.ETag(`"settings-` + hex.EncodeToString(sum[:16]) + `"`), nil
}

// plainSetting returns an error for conditions that settings without versions cannot have.
func plainSetting(exists bool, c optimistic.Conditions) error {
	if !exists {
		return errors.New("settings cannot be created without the resource they belong to")
	}
	if c.IfTags != "" || c.LeaseID != "" {
		return errors.New("Conditions: these settings have neither index tags nor leases; last writer wins")
	}
	return nil
}
