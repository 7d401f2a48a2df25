package anyblob

import (
	"context"
	"maps"
	"slices"

	"github.com/azconc/azconc/pkg/wire"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/ptr"
)

func Properties(ctx context.Context, client *blob.Client, cpk *blob.CPKInfo) (blob.GetPropertiesResponse, error) {
	return PropertiesIf(ctx, client, nil, cpk)
}

// PropertiesIf reads a blob's properties under conditions. The response has an ETag.
func PropertiesIf(ctx context.Context, client *blob.Client, access *blob.AccessConditions, cpk *blob.CPKInfo) (blob.GetPropertiesResponse, error) {
	resp, err := wire.Request(ctx, "Get Blob Properties", func(ctx context.Context) (blob.GetPropertiesResponse, error) {
		return client.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: access, CPKInfo: cpk})
	})
	_, err = protocol.Sent("ETag", resp.ETag, err)
	return resp, err
}

// Look reads a blob's version and lineage without its content.
func Look(ctx context.Context, client *blob.Client, cpk *blob.CPKInfo) (optimistic.State, error) {
	return StateOf(Properties(ctx, client, cpk))
}

// StateOf returns the state in a Get Blob Properties response.
func StateOf(resp blob.GetPropertiesResponse, err error) (optimistic.State, error) {
	if err != nil {
		return AbsentState(err)
	}
	_, lineage := meta.Split(resp.Metadata)
	return protocol.Dated(optimistic.State{
		Exists: true, ETag: ptr.Value(resp.ETag), LastModified: ptr.Value(resp.LastModified), Created: ptr.Value(resp.CreationTime), Lineage: lineage,
	}, resp.Date), nil
}

// ValidateMetadata checks metadata that a caller sets.
func ValidateMetadata(metadata map[string]string) error {
	if len(metadata) == 0 {
		return nil // most targets set none
	}
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		if err := meta.Validate(name, metadata[name]); err != nil {
			return err
		}
	}
	return nil
}
