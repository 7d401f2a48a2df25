package tables

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

// Mode selects the properties that an update of an entity sends.
type Mode uint8

const (
	// MergeChanges sends the properties that have changed (Merge Entity). A change that removes a property sends all of
	// them, as ReplaceWhole does, because a merge cannot remove any.
	MergeChanges Mode = iota
	// ReplaceWhole sends all properties (Update Entity), including those that T does not name.
	ReplaceWhole
	// MergeGiven sends the properties of the value as they are given (Merge Entity), whatever the version that they replace
	// holds. They need not have been read: optimistic.Replace takes a base of which only the ETag is known, or is "*".
	MergeGiven
	// ReplaceGiven is MergeGiven with Update Entity: properties that the value does not name are removed.
	ReplaceGiven
)

// Entity is a table entity as a Target. T is a struct with json tags, a map with string keys, or Properties.
//
// In both modes a write keeps the properties that T does not name, with their types and exact values. A property that T
// names keeps its stored type as long as the new value fits. A new property gets the type that PropertyOf gives to its
// Go type. A struct may name PartitionKey, RowKey and Timestamp to read them; they cannot be changed. The lineage is a
// string property, LineageKey, and the operations are another, OperationsKey; neither is part of T's value. An entity in
// which another program has a property of one of these names and another type cannot be read, so that no write replaces
// the property.
//
// Another program that reads an entity and later writes back all of its properties without a condition (Insert Or Merge
// and Insert Or Replace Entity, or If-Match *) also puts back the lineage that it read. If that is the one that our write
// replaced, our write counts as not applied, like a write to a blob whose metadata were put back: see package optimistic.
//
// Names are case-sensitive, as in the service. A nil pointer or an omitted member (omitempty, omitzero) is a property
// that the entity does not have: setting a property to one removes it.
//
// An entity that is too large for the service (252 properties including the lineage, or 1 MiB) is refused before
// anything is sent. The lineage is shortened rather than making an entity too large.
type Entity[T any] struct {
	Client       *aztables.Client // the table; required
	PartitionKey string           // required: the SDK cannot address an empty partition key
	RowKey       string
	Mode         Mode // Defaults to MergeChanges.

	optimistic.Sealed[T]
}

// NewEntity returns an entity of the client's table as a Target.
func NewEntity[T any](client *aztables.Client, partition, row string) Entity[T] {
	return Entity[T]{Client: client, PartitionKey: partition, RowKey: row}
}

// Resource implements optimistic.Target: table/partition/row.
func (e Entity[T]) Resource() string {
	return tableName(e.Client) + "/" + e.PartitionKey + "/" + e.RowKey
}

func (e Entity[T]) protocol() any { return entityTarget[T]{e} }

// What is behind a target is found by its method protocol.
func init() {
	sealed.Opens(func(target any) any {
		if t, ok := target.(interface{ protocol() any }); ok {
			return t.protocol()
		}
		return nil
	})
}

// entityTarget is an Entity to the operations of package optimistic.
type entityTarget[T any] struct{ Entity[T] }

func (e entityTarget[T]) Traits() sealed.Traits {
	return sealed.Traits{Client: e.Client, Scope: "entity"}
}

// tableName returns the table's name, which the SDK's client does not export. It is read by reflection, because each other way costs
// more than it gives: a policy sees the URL only once a request is sent, and the name is needed before, by the span and by the errors of
// input that is refused; a client's options cannot be read back; and a second name from the caller could contradict the client. The
// name is used in messages and spans only, nothing follows from it, a field that moves leaves "(table)", and a test fails then.
func tableName(client *aztables.Client) string {
	if client == nil {
		return "(no table)"
	}
	if name := reflect.ValueOf(client).Elem().FieldByName("name"); name.Kind() == reflect.String {
		return name.String()
	}
	return "(table)"
}

// entityCarry is the part of a read that the following write needs.
type entityCarry struct{ properties Properties }

// Read implements Target: one Query Entities with both keys.
func (e entityTarget[T]) Read(ctx context.Context) (*sealed.Version[T], error) {
	stored, state, err := readEntity(ctx, e.Client, e.PartitionKey, e.RowKey)
	if err != nil || !state.Exists {
		return &sealed.Version[T]{Value: emptyMap[T]()}, err
	}
	v := sealed.Carry(&sealed.Version[T]{State: state}, entityCarry{stored.properties})
	if err := decodeInto(stored, &v.Value); err != nil {
		return nil, err
	}
	return v, nil
}

// emptyMap returns T's zero value, or an empty map if T is a map, so that a change can write to it.
func emptyMap[T any]() (value T) {
	if t := reflect.TypeFor[T](); t.Kind() == reflect.Map {
		reflect.ValueOf(&value).Elem().Set(reflect.MakeMap(t))
	}
	return value
}

// Look implements Target: one Query Entities with both keys, because the SDK cannot select properties there.
func (e entityTarget[T]) Look(ctx context.Context) (protocol.State, error) {
	_, state, err := readEntity(ctx, e.Client, e.PartitionKey, e.RowKey)
	return state, err
}

// readEntity parses an entity from the bytes that the service sent. The SDK's value has been through float64, which
// turns a Double that is a whole number into an integer.
func readEntity(ctx context.Context, client *aztables.Client, partition, row string) (storedEntity, protocol.State, error) {
	if err := addressable(partition, row); err != nil {
		return storedEntity{}, protocol.State{}, err
	}
	var raw *http.Response
	resp, err := wire.Request(ctx, "Query Entities", func(ctx context.Context) (aztables.GetEntityResponse, error) {
		return client.GetEntity(policy.WithCaptureResponse(ctx, &raw), partition, row, nil)
	})
	if azerr.Has(err, "ResourceNotFound", "EntityNotFound") {
		return storedEntity{}, protocol.State{}, nil
	}
	if err = wire.Genuine(raw, err); err != nil {
		return storedEntity{}, protocol.State{}, err
	}
	body, err := runtime.Payload(raw)
	if err != nil {
		return storedEntity{}, protocol.State{}, err
	}
	stored, err := parseEntity(body)
	if err != nil {
		return storedEntity{}, protocol.State{}, err
	}
	if resp.ETag != "" {
		stored.etag = string(resp.ETag)
	}
	etag, err := protocol.Sent("ETag", ptr.Optional(azcore.ETag(stored.etag)), nil)
	if err != nil {
		return storedEntity{}, protocol.State{}, err
	}
	for _, own := range []string{optimistic.LineageKey, optimistic.OperationsKey} {
		if p, stored := stored.properties[own]; stored && p.Type != EDMString {
			return storedEntity{}, protocol.State{}, fmt.Errorf("property %q is an %s of another program: azconc stores its own text under this name, so the property has to be renamed first", own, p.Type)
		}
	}
	state := protocol.State{
		Exists: true, ETag: etag,
		Lineage: protocol.ParseLineage(stored.properties[optimistic.LineageKey].Value, stored.properties[optimistic.OperationsKey].Value),
	}
	if at, err := parseDateTime(stored.timestamp); err == nil {
		state.LastModified = at
	}
	delete(stored.properties, optimistic.LineageKey)
	delete(stored.properties, optimistic.OperationsKey)
	return stored, state, nil
}

// addressable returns an error for keys that no request can carry as they are. The rows of a transaction are checked one by one.
func addressable(partition string, rows ...string) error {
	if partition == "" {
		return errors.New("the partition key is empty: the service allows that, but the SDK cannot address it")
	}
	for _, key := range append(rows, partition) {
		if !utf8.ValidString(key) {
			return fmt.Errorf("the key %q is not UTF-8, and cannot be stored as it is: encode it, such as in hex", key)
		}
	}
	return nil
}

// Prepare implements Target: Insert Entity, Merge Entity or Update Entity.
func (e entityTarget[T]) Prepare(base *sealed.Version[T], value T, lineage protocol.Lineage, c sealed.Conditions) (protocol.Prepared, error) {
	if err := e.refuse(c); err != nil {
		return protocol.Prepared{}, err
	}
	d, err := e.diff(base, value)
	if err != nil {
		return protocol.Prepared{}, err
	}
	given := e.Mode == MergeGiven || e.Mode == ReplaceGiven
	if base.Exists && !given && d.empty() && !lineage.Begins(base.Lineage) {
		return protocol.Prepared{}, nil
	}
	whole := e.Mode == ReplaceWhole || e.Mode == ReplaceGiven || d.removed || !base.Exists
	p := protocol.Prepared{Stored: lineage, Carry: entityCarry{d.after}}
	body, err := d.body(e.PartitionKey, e.RowKey, lineage, whole)
	if err != nil {
		return protocol.Prepared{}, err
	}
	if !base.Exists {
		p.Send = func(ctx context.Context) (azcore.ETag, error) {
			resp, err := wire.Request(ctx, "Insert Entity", func(ctx context.Context) (aztables.AddEntityResponse, error) {
				return e.Client.AddEntity(ctx, body, nil)
			})
			return resp.ETag, err
		}
		return p, nil
	}
	mode, op := aztables.UpdateModeMerge, "Merge Entity"
	if whole {
		mode, op = aztables.UpdateModeReplace, "Update Entity"
	}
	p.Send = func(ctx context.Context) (azcore.ETag, error) {
		match := base.ETag // a new one each time, because the SDK writes into the options
		resp, err := wire.Request(ctx, op, func(ctx context.Context) (aztables.UpdateEntityResponse, error) {
			return e.Client.UpdateEntity(ctx, body, &aztables.UpdateEntityOptions{IfMatch: &match, UpdateMode: mode})
		})
		return resp.ETag, err
	}
	return p, nil
}

// Remove implements Target: one Delete Entity.
func (e entityTarget[T]) Remove(base protocol.State, c sealed.Conditions) (protocol.Write, error) {
	if err := e.refuse(c); err != nil {
		return nil, err
	}
	if base.ETag == "" {
		base.ETag = azcore.ETagAny
	}
	return func(ctx context.Context) (azcore.ETag, error) {
		match := base.ETag
		_, err := wire.Request(ctx, "Delete Entity", func(ctx context.Context) (aztables.DeleteEntityResponse, error) {
			return e.Client.DeleteEntity(ctx, e.PartitionKey, e.RowKey, &aztables.DeleteEntityOptions{IfMatch: &match})
		})
		return "", err
	}, nil
}

// refuse returns an error for conditions that the Table service does not have.
func (e entityTarget[T]) refuse(c sealed.Conditions) error {
	if c.IfTags != "" || c.LeaseID != "" {
		return errors.New("entities have neither index tags nor leases: IfTags and LeaseID cannot be given")
	}
	return addressable(e.PartitionKey, e.RowKey)
}

// diff returns the changes from base to value.
func (e entityTarget[T]) diff(base *sealed.Version[T], value T) (entityDiff, error) {
	if e.Mode == MergeGiven || e.Mode == ReplaceGiven {
		return changeOf(nil, false, value, e.PartitionKey, e.RowKey)
	}
	carry, ok := sealed.Carried(base).(entityCarry)
	if base.Exists && !ok {
		// Compared with no properties, zero values would count as unchanged.
		return entityDiff{}, errors.New("the base version was not read from an entity: Read it first")
	}
	return changeOf(carry.properties, base.Exists, value, e.PartitionKey, e.RowKey)
}

// Clone copies a value through its properties if it is a map, because JSON would drop their types, and else through JSON.
func (e entityTarget[T]) Clone(value T) (clone T, err error) {
	switch v := any(value).(type) {
	case Properties:
		return any(maps.Clone(v)).(T), nil
	case map[string]any:
		p, err := encodeValue(v, nil)
		if err == nil {
			err = decodeInto(storedEntity{properties: p}, &clone)
		}
		return clone, err
	}
	if _, err := throughJSON(value, &clone); err != nil {
		return clone, fmt.Errorf("copy: %w", err)
	}
	return clone, nil
}
