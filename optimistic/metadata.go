package optimistic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
)

// maxMetadata is the largest total size of the names and values of a blob's metadata (REST: "Set Blob Metadata", 8 KB).
const maxMetadata = 8 << 10

// Metadata is the user metadata of a blob of any type as a Target. The blob must exist: metadata cannot be created
// without it. Names are in lower case, because the service ignores their case and HTTP does not keep it. The lineage is
// not part of the value. A write does not change the content, HTTP headers and tags.
type Metadata struct {
	Client *blob.Client

	// CPK is passed with every request, for blobs under customer-provided keys.
	CPK *blob.CPKInfo

	_ struct{}
}

// BlobMetadata returns the user metadata of a blob as a Target.
func BlobMetadata(client *blob.Client) Metadata { return Metadata{Client: client} }

// Resource implements Target.
func (m Metadata) Resource() string { return resource.Path(m.Client.URL()) }

// Traits describes the target to the calls of package optimistic.
func (m Metadata) Traits() Traits {
	return Traits{Client: m.Client, Scope: "metadata", Lease: leaseOn(m.Client)}
}

// Clone implements Cacheable.
func (m Metadata) Clone(value map[string]string) (map[string]string, error) {
	return maps.Clone(value), nil
}

// Equal implements Cacheable.
func (m Metadata) Equal(x, y map[string]string) bool {
	return maps.Equal(mergeMetadata(nil, x), mergeMetadata(nil, y))
}

// Read implements Target: one Get Blob Properties.
func (m Metadata) Read(ctx context.Context) (*Version[map[string]string], error) {
	resp, err := blobProperties(ctx, m.Client, m.CPK)
	if azerr.Has(err, "BlobNotFound") {
		return &Version[map[string]string]{}, nil
	}
	if err != nil {
		return nil, err
	}
	v := &Version[map[string]string]{State: State{Exists: true, ETag: deref(resp.ETag), LastModified: deref(resp.LastModified)}}
	v.Value, v.Lineage = splitMetadata(resp.Metadata)
	v.Carry = maps.Clone(v.Value)
	return v, nil
}

// Look implements Target: one Get Blob Properties.
func (m Metadata) Look(ctx context.Context) (State, error) { return lookAtBlob(ctx, m.Client, m.CPK) }

// Prepare implements Target: one Set Blob Metadata.
func (m Metadata) Prepare(base *Version[map[string]string], value map[string]string, lineage Lineage, c Conditions) (Write, error) {
	if !base.Exists {
		return nil, errors.New("a blob's metadata cannot be created without the blob: create the blob first")
	}
	before, _ := base.Carry.(map[string]string)
	value = replaceMetadata(before, value)
	if maps.Equal(value, before) && !lineage.begins(base.Lineage) {
		return nil, nil
	}
	for name, v := range value {
		if old, ok := before[name]; ok && old == v {
			continue // another writer stored it; it is sent back unchanged
		}
		if err := validMetadata(name, v); err != nil {
			return nil, err
		}
	}
	metadata, err := joinMetadata(value, lineage)
	if err != nil {
		return nil, err
	}
	opts := blob.SetMetadataOptions{AccessConditions: writeConditions(base.State, c), CPKInfo: m.CPK}
	return func(ctx context.Context) (azcore.ETag, error) {
		CountRequest(ctx)
		o := opts
		resp, err := m.Client.SetMetadata(ctx, metadata, &o)
		return deref(resp.ETag), unsignable(err, value)
	}, nil
}

// Written implements Cacheable.
func (m Metadata) Written(base *Version[map[string]string], value map[string]string) (any, error) {
	before, _ := base.Carry.(map[string]string)
	return replaceMetadata(before, value), nil
}

// Remove implements Target: it refuses, because metadata is deleted only with its blob.
func (m Metadata) Remove(State, Conditions) (Write, error) {
	return nil, errors.New("metadata cannot be deleted by itself: update it to an empty map, or delete the blob")
}

func blobProperties(ctx context.Context, client *blob.Client, cpk *blob.CPKInfo) (blob.GetPropertiesResponse, error) {
	return request(ctx, func(ctx context.Context) (blob.GetPropertiesResponse, error) {
		return client.GetProperties(ctx, &blob.GetPropertiesOptions{CPKInfo: cpk})
	})
}

// lookAtBlob reads a blob's version and lineage without its content.
func lookAtBlob(ctx context.Context, client *blob.Client, cpk *blob.CPKInfo) (State, error) {
	return stateOf(blobProperties(ctx, client, cpk))
}

// stateOf returns the state in a Get Blob Properties response.
func stateOf(resp blob.GetPropertiesResponse, err error) (State, error) {
	if azerr.Has(err, "BlobNotFound") {
		return State{}, nil
	}
	if err != nil {
		return State{}, err
	}
	_, lineage := splitMetadata(resp.Metadata)
	return State{
		Exists: true, ETag: deref(resp.ETag), LastModified: deref(resp.LastModified), Created: deref(resp.CreationTime), Lineage: lineage,
	}, nil
}

func removeBlob(client *blob.Client, base State, c Conditions) Write {
	opts := blob.DeleteOptions{AccessConditions: accessConditions(c)}
	if base.ETag != "" {
		opts.AccessConditions = writeConditions(State{Exists: true, ETag: base.ETag}, c)
	}
	return func(ctx context.Context) (azcore.ETag, error) {
		CountRequest(ctx)
		o := opts
		_, err := client.Delete(ctx, &o)
		return "", err
	}
}

// splitMetadata separates the lineage from the metadata in a response, and converts the names to lower case.
func splitMetadata(raw map[string]*string) (map[string]string, Lineage) {
	metadata := make(map[string]string, len(raw))
	var writes, operations string
	for name, value := range raw {
		switch {
		case strings.EqualFold(name, LineageKey):
			writes = deref(value)
		case strings.EqualFold(name, OperationsKey):
			operations = deref(value)
		default:
			metadata[strings.ToLower(name)] = deref(value)
		}
	}
	return metadata, ParseLineage(writes, operations)
}

// mergeMetadata returns base with set applied; an empty value removes the name.
func mergeMetadata(base, set map[string]string) map[string]string {
	merged := make(map[string]string, len(base)+len(set))
	maps.Copy(merged, base)
	for name, value := range set {
		name = strings.ToLower(name)
		if value == "" {
			delete(merged, name)
			continue
		}
		merged[name] = value
	}
	return merged
}

// replaceMetadata returns the metadata to store if value replaces before. An empty value removes the name, unless
// another writer has stored it empty: the service allows empty values.
func replaceMetadata(before, value map[string]string) map[string]string {
	replaced := make(map[string]string, len(value))
	for name, v := range value {
		name = strings.ToLower(name)
		if old, ok := before[name]; v != "" || ok && old == "" {
			replaced[name] = v
		}
	}
	return replaced
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

// joinMetadata adds the lineage to the metadata, shortened to what the caller's own metadata leaves of the 8 KB. A
// shorter lineage proves less, but never anything wrong. The operations are not shortened, because a forgotten
// operation would be carried out again.
func joinMetadata(metadata map[string]string, lineage Lineage) (map[string]*string, error) {
	out := make(map[string]*string, len(metadata)+2)
	size := 0
	for name, value := range metadata {
		size += len(name) + len(value)
		out[name] = &value
	}
	room := maxMetadata - size
	if n := len(lineage.operations); n > 0 {
		text := lineage.OperationsString()
		if room -= len(OperationsKey) + len(text); room < 0 {
			return nil, fmt.Errorf("metadata: %d bytes are %d too many beside the %d operations that have to be remembered (OperationID); the service takes %d",
				size, -room, n, maxMetadata)
		}
		out[OperationsKey] = &text
	}
	if len(lineage.Writes) == 0 {
		return out, nil
	}
	if fitted := lineage.fit(room - len(LineageKey)); fitted != "" {
		out[LineageKey] = &fitted
	}
	return out, nil
}

// validateMetadata checks metadata that a caller sets.
func validateMetadata(metadata map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		if err := validMetadata(name, metadata[name]); err != nil {
			return err
		}
	}
	return nil
}

// validMetadata refuses what the service would refuse, and what a proxy would drop.
func validMetadata(name, value string) error {
	if strings.EqualFold(name, LineageKey) || strings.EqualFold(name, OperationsKey) {
		return fmt.Errorf("metadata: %q is azconc's own; choose another name", name)
	}
	for i, r := range name {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return fmt.Errorf("metadata: name %q is not an identifier (letters, digits and _, not starting with a digit)", name)
		}
	}
	if name == "" {
		return errors.New("metadata: an empty name")
	}
	for _, r := range value {
		if r < ' ' && r != '\t' || r > '~' {
			return fmt.Errorf("metadata: the value of %q contains %q, which is not allowed in a header; encode it, for example in base64", name, r)
		}
	}
	if strings.TrimSpace(value) != value {
		return fmt.Errorf("metadata: the value of %q begins or ends with white space, which a header does not keep", name)
	}
	return nil
}
