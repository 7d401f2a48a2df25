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
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
)

// NewLastWriterWinsQueueMetadata returns the user metadata of a queue as a Target. The queue must exist.
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
func NewLastWriterWinsQueueMetadata(client *azqueue.QueueClient) optimistic.Target[map[string]string] {
	return queueMetadataTarget{client}
}

type queueMetadataTarget struct{ queue *azqueue.QueueClient }

// Protocol implements optimistic.Target.
func (m queueMetadataTarget) Protocol() sealed.Target[map[string]string] { return m }

// Resource implements Target.
func (m queueMetadataTarget) Resource() string { return resource.Path(m.queue.URL()) }

// Traits describes the target to the calls of package optimistic.
func (m queueMetadataTarget) Traits() sealed.Traits { return sealed.Traits{Client: m.queue} }

// Read implements Target: one Get Queue Metadata.
func (m queueMetadataTarget) Read(ctx context.Context) (*sealed.Version[map[string]string], error) {
	resp, err := wire.Request(ctx, "Get Queue Metadata", func(ctx context.Context) (azqueue.GetQueuePropertiesResponse, error) {
		return m.queue.GetProperties(ctx, nil)
	})
	if azerr.Has(err, "QueueNotFound") {
		return &sealed.Version[map[string]string]{}, nil
	}
	if err != nil {
		return nil, err
	}
	v := &sealed.Version[map[string]string]{State: protocol.State{Exists: true}}
	v.Value, v.Lineage = meta.Split(resp.Metadata)
	if v.ETag, err = settingsTag(v.Value, v.Lineage); err != nil {
		return nil, err
	}
	return sealed.Carry(v, maps.Clone(v.Value)), nil
}

// Look implements Target: one Get Queue Metadata.
func (m queueMetadataTarget) Look(ctx context.Context) (protocol.State, error) {
	return stateOf(m.Read(ctx))
}

// stateOf returns the state that a read found.
func stateOf[T any](v *sealed.Version[T], err error) (protocol.State, error) {
	if err != nil {
		return protocol.State{}, err
	}
	return v.State, nil
}

// Prepare implements Target: one Set Queue Metadata.
func (m queueMetadataTarget) Prepare(base *sealed.Version[map[string]string], value map[string]string, lineage protocol.Lineage, c sealed.Conditions) (protocol.Prepared, error) {
	if err := plainSetting(base.Exists, c); err != nil {
		return protocol.Prepared{}, err
	}
	before, _ := sealed.Carried(base).(map[string]string)
	value, metadata, stored, err := meta.Changed(base.State, before, value, lineage)
	if metadata == nil || err != nil {
		return protocol.Prepared{}, err
	}
	_, kept := meta.Split(metadata) // it may have been shortened
	produced, err := settingsTag(value, kept)
	if err != nil {
		return protocol.Prepared{}, err
	}
	send := protocol.LookFirst(func(ctx context.Context) (azcore.ETag, error) {
		_, err := wire.Request(ctx, "Set Queue Metadata", func(ctx context.Context) (azqueue.SetMetadataResponse, error) {
			return m.queue.SetMetadata(ctx, &azqueue.SetMetadataOptions{Metadata: metadata})
		})
		return produced, err
	}, base.State, produced, m.Look)
	return protocol.Prepared{Send: send, Stored: stored}, nil
}

// Remove implements Target: it refuses, because metadata is deleted only with its queue.
func (m queueMetadataTarget) Remove(protocol.State, sealed.Conditions) (protocol.Write, error) {
	return nil, errors.New("metadata cannot be deleted by itself: update it to an empty map, or delete the queue")
}

// settingsTag computes a version for settings to which the service gives none. Equal settings have equal versions.
func settingsTag(settings any, lineage protocol.Lineage) (azcore.ETag, error) {
	text, err := json.Marshal(settings)
	if err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	sum := sha256.Sum256(append(text, lineage.String()+lineage.OperationsString()...))
	return azcore.ETag(`"settings-` + hex.EncodeToString(sum[:16]) + `"`), nil
}

// plainSetting returns an error for conditions that settings without versions cannot have.
func plainSetting(exists bool, c sealed.Conditions) error {
	if !exists {
		return errors.New("settings cannot be created without the resource they belong to")
	}
	if c.IfTags != "" || c.LeaseID != "" {
		return errors.New("Conditions: these settings have neither index tags nor leases; last writer wins")
	}
	return nil
}
