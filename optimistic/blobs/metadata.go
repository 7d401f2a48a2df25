package blobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
)

// Metadata is the user metadata of a blob of any type as a Target. The blob must exist: metadata cannot be created
// without it. Names are in lower case, because the service ignores their case and HTTP does not keep it. The lineage is
// not part of the value. A write does not change the content, HTTP headers and tags.
type Metadata struct {
	Client *blob.Client // required

	optimistic.Sealed[map[string]string]
}

// NewMetadata returns the user metadata of a blob as a Target.
func NewMetadata(client *blob.Client) Metadata { return Metadata{Client: client} }

func (m Metadata) Resource() string { return resource.Path(m.Client.URL()) }

func (m Metadata) protocol() any { return metadataTarget{m} }

// metadataTarget is a Metadata to the operations of package optimistic.
type metadataTarget struct{ Metadata }

func (m metadataTarget) Traits() sealed.Traits {
	return sealed.Traits{Client: m.Client, Scope: "metadata"}
}

func (m metadataTarget) Clone(value map[string]string) (map[string]string, error) {
	return maps.Clone(value), nil
}

// Read implements Target: one Get Blob Properties.
func (m metadataTarget) Read(ctx context.Context) (*sealed.Version[map[string]string], error) {
	resp, err := anyblob.Properties(ctx, m.Client)
	if err != nil {
		return anyblob.Absent[map[string]string](err)
	}
	v := &sealed.Version[map[string]string]{State: protocol.State{Exists: true, ETag: ptr.Value(resp.ETag), LastModified: ptr.Value(resp.LastModified)}}
	v.Value, v.Lineage = meta.Split(resp.Metadata)
	sealed.Carry(v, maps.Clone(v.Value))
	return v, nil
}

// Look implements Target: one Get Blob Properties.
func (m metadataTarget) Look(ctx context.Context) (protocol.State, error) {
	return anyblob.Look(ctx, m.Client)
}

// Prepare implements Target: one Set Blob Metadata.
func (m metadataTarget) Prepare(base *sealed.Version[map[string]string], value map[string]string, lineage protocol.Lineage, c sealed.Conditions) (protocol.Prepared, error) {
	if !base.Exists {
		return protocol.Prepared{}, errors.New("a blob's metadata cannot be created without the blob: create the blob first")
	}
	before, _ := sealed.Carried(base).(map[string]string)
	value, metadata, stored, err := meta.Changed(base.State, before, value, lineage)
	if metadata == nil || err != nil {
		return protocol.Prepared{}, err
	}
	opts := blob.SetMetadataOptions{AccessConditions: anyblob.WriteConditions(base.State, c)}
	return protocol.Prepared{Stored: stored, Carry: value, Cramped: meta.Cramped(metadata, m.Client.URL()), Send: func(ctx context.Context) (azcore.ETag, error) {
		o := opts
		resp, err := wire.Request(ctx, "Set Blob Metadata", func(ctx context.Context) (blob.SetMetadataResponse, error) {
			return m.Client.SetMetadata(ctx, metadata, &o)
		})
		return ptr.Value(resp.ETag), unsignable(err, value)
	}}, nil
}

// removeBlob returns the deletion of a blob: one Delete Blob.
func removeBlob(client *blob.Client, opts blob.DeleteOptions) protocol.Write {
	return func(ctx context.Context) (azcore.ETag, error) {
		o := opts
		_, err := wire.Request(ctx, "Delete Blob", func(ctx context.Context) (blob.DeleteResponse, error) {
			return client.Delete(ctx, &o)
		})
		return "", err
	}
}

// unsignable explains why the service refuses the signature of a request with metadata that another writer has stored
// in Latin-1: the service and the SDK sign different bytes. The response is kept as text only, because it says nothing
// about the credential.
func unsignable(err error, metadata map[string]string) error {
	if !azerr.Has(err, "AuthenticationFailed") {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		if strings.ContainsFunc(metadata[name], func(r rune) bool { return r > '~' }) {
			return fmt.Errorf("metadata: the value of %q, which another writer has stored, is not ASCII, and a request that carries it cannot be signed with the account's key: set all metadata to ASCII values first, or use a SAS or Entra ID (%s)",
				name, azerr.Summary(err))
		}
	}
	return err
}
