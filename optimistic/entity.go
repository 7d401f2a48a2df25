package optimistic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/pkg/azerr"
)

// EntityMode is how a changed entity is sent.
type EntityMode uint8

const (
	// MergeChanges sends the properties that have changed (Merge Entity). A change that takes a property away is sent
	// as with ReplaceWhole, because a merge cannot express it.
	MergeChanges EntityMode = iota
	// ReplaceWhole sends all properties (Update Entity), those that T does not name included.
	ReplaceWhole
)

// Entity is a table entity as a Target. T is a struct with json tags, a map with string keys, or Properties.
//
// Whatever the mode, a write keeps the properties that T does not name, with their types and to the last digit. A
// property that T names keeps the type it is stored with, as long as the new value fits; a new one gets the type that
// the Go type stands for, see PropertyOf. A struct may name PartitionKey, RowKey and Timestamp to read them; they cannot be
// changed. The lineage is a string property, LineageKey, which T never sees; so are the operations, OperationsKey.
//
// Names are compared with their case, as the service does. A nil pointer or a left-out member (omitempty, omitzero) is a
// property that the entity does not have: setting one takes the property away.
//
// Entities beyond what the service takes (252 properties, the lineage among them, and 1 MiB) are refused before anything
// is sent. A lineage is shortened rather than making an entity too large.
type Entity[T any] struct {
	Client       *aztables.Client // of the table
	PartitionKey string           // not empty: the SDK cannot address an empty one
	RowKey       string
	Mode         EntityMode // Defaults to MergeChanges.

	_ struct{}
}

// TableEntity is an entity of the client's table.
func TableEntity[T any](client *aztables.Client, partition, row string) Entity[T] {
	return Entity[T]{Client: client, PartitionKey: partition, RowKey: row}
}

// Resource implements Target: table/partition/row.
func (e Entity[T]) Resource() string {
	return tableName(e.Client) + "/" + e.PartitionKey + "/" + e.RowKey
}

func (e Entity[T]) client() any { return e.Client }

func (e Entity[T]) scope() string { return "entity" }

// tableName reads the name that the SDK's client keeps to itself; it is for messages only, and a test notices when it
// moves.
func tableName(client *aztables.Client) string {
	if client == nil {
		return "(no table)"
	}
	if name := reflect.ValueOf(client).Elem().FieldByName("name"); name.Kind() == reflect.String {
		return name.String()
	}
	return "(table)"
}

// entityCarry is what a read of an entity keeps for the write that follows.
type entityCarry struct{ properties Properties }

// Read implements Target: one Query Entities with both keys.
func (e Entity[T]) Read(ctx context.Context) (*Version[T], error) {
	stored, state, err := readEntity(ctx, e.Client, e.PartitionKey, e.RowKey)
	if err != nil || !state.Exists {
		return &Version[T]{Value: emptyMap[T]()}, err
	}
	v := &Version[T]{State: state, Carry: entityCarry{stored.properties}}
	if err := decodeInto(stored, &v.Value); err != nil {
		return nil, err
	}
	return v, nil
}

// emptyMap is T's zero value, but a map that can be written to: a change that creates an entity starts with it.
func emptyMap[T any]() (value T) {
	if t := reflect.TypeFor[T](); t.Kind() == reflect.Map {
		reflect.ValueOf(&value).Elem().Set(reflect.MakeMap(t))
	}
	return value
}

// Look implements Target: one Query Entities with both keys, since the SDK cannot leave properties out there.
func (e Entity[T]) Look(ctx context.Context) (State, error) {
	_, state, err := readEntity(ctx, e.Client, e.PartitionKey, e.RowKey)
	return state, err
}

// readEntity reads an entity from the bytes that the service sent: the SDK's own value has been through float64, and a
// Double that is a whole number has become an integer on the way.
func readEntity(ctx context.Context, client *aztables.Client, partition, row string) (storedEntity, State, error) {
	if err := addressable(partition); err != nil {
		return storedEntity{}, State{}, err
	}
	CountRequest(ctx)
	var raw *http.Response
	resp, err := client.GetEntity(policy.WithCaptureResponse(ctx, &raw), partition, row, nil)
	if azerr.Has(err, "ResourceNotFound", "EntityNotFound") {
		return storedEntity{}, State{}, nil
	}
	if err = genuine(raw, err); err != nil {
		return storedEntity{}, State{}, err
	}
	body, err := runtime.Payload(raw)
	if err != nil {
		return storedEntity{}, State{}, err
	}
	stored, err := parseEntity(body)
	if err != nil {
		return storedEntity{}, State{}, err
	}
	if resp.ETag != "" {
		stored.etag = string(resp.ETag)
	}
	if stored.etag == "" {
		return storedEntity{}, State{}, errors.New("the service told no ETag") // and a write must not go without one
	}
	state := State{
		Exists: true, ETag: azcore.ETag(stored.etag),
		Lineage: ParseLineage(stored.properties[LineageKey].Value, stored.properties[OperationsKey].Value),
	}
	if at, err := parseDateTime(stored.timestamp); err == nil {
		state.LastModified = at
	}
	delete(stored.properties, LineageKey)
	delete(stored.properties, OperationsKey)
	return stored, state, nil
}

func addressable(partition string) error {
	if partition == "" {
		return errors.New("the partition key is empty; the service allows that, the SDK cannot address it")
	}
	return nil
}

// Prepare implements Target: Insert Entity, Merge Entity or Update Entity.
func (e Entity[T]) Prepare(base *Version[T], value T, lineage Lineage, c Conditions) (Write, error) {
	if err := e.refuse(c); err != nil {
		return nil, err
	}
	d, err := e.diff(base, value)
	if err != nil {
		return nil, err
	}
	if base.Exists && d.empty() && !lineage.begins(base.Lineage) {
		return nil, nil
	}
	whole := e.Mode == ReplaceWhole || d.removed || !base.Exists
	body, err := d.body(e.PartitionKey, e.RowKey, lineage, whole)
	if err != nil {
		return nil, err
	}
	if !base.Exists {
		return func(ctx context.Context) (azcore.ETag, error) {
			CountRequest(ctx)
			resp, err := e.Client.AddEntity(ctx, body, nil)
			return withETag(resp.ETag, err)
		}, nil
	}
	mode := aztables.UpdateModeMerge
	if whole {
		mode = aztables.UpdateModeReplace
	}
	return func(ctx context.Context) (azcore.ETag, error) {
		CountRequest(ctx)
		match := base.ETag // its own each time: the SDK writes into the options
		resp, err := e.Client.UpdateEntity(ctx, body, &aztables.UpdateEntityOptions{IfMatch: &match, UpdateMode: mode})
		return withETag(resp.ETag, err)
	}, nil
}

// withETag makes a success without an ETag an answer that was cut off: the look that follows finds the ETag.
func withETag(etag azcore.ETag, err error) (azcore.ETag, error) {
	if err == nil && etag == "" {
		err = fmt.Errorf("the service told no ETag: %w", io.ErrUnexpectedEOF)
	}
	return etag, err
}

// Remove implements Target: one Delete Entity.
func (e Entity[T]) Remove(base State, c Conditions) (Write, error) {
	if err := e.refuse(c); err != nil {
		return nil, err
	}
	if base.ETag == "" {
		base.ETag = azcore.ETagAny
	}
	return func(ctx context.Context) (azcore.ETag, error) {
		CountRequest(ctx)
		match := base.ETag
		_, err := e.Client.DeleteEntity(ctx, e.PartitionKey, e.RowKey, &aztables.DeleteEntityOptions{IfMatch: &match})
		return "", err
	}, nil
}

// refuse turns down what entities do not know.
func (e Entity[T]) refuse(c Conditions) error {
	if c.IfTags != "" || c.LeaseID != "" {
		return errors.New("entities have neither index tags nor leases: IfTags and LeaseID cannot be given")
	}
	return addressable(e.PartitionKey)
}

// diff is what value changes about base.
func (e Entity[T]) diff(base *Version[T], value T) (entityDiff, error) {
	carry, ok := base.Carry.(entityCarry)
	if base.Exists && !ok {
		// Compared with nothing, a value would count as unchanged where it is zero.
		return entityDiff{}, errors.New("the version it builds on was not read from an entity: Read it first")
	}
	return changeOf(carry.properties, base.Exists, value, e.PartitionKey, e.RowKey)
}

// Clone implements Cacheable.
func (e Entity[T]) Clone(value T) (T, error) {
	switch v := any(value).(type) {
	case Properties:
		return any(maps.Clone(v)).(T), nil
	case map[string]any:
		return any(cloneValues(v)).(T), nil
	}
	var codec JSON[T]
	data, err := codec.Encode(value)
	if err != nil {
		return value, fmt.Errorf("encode: %w", err)
	}
	return codec.Decode(data)
}

func cloneValues(m map[string]any) map[string]any {
	out := maps.Clone(m)
	for name, value := range out {
		if data, ok := value.([]byte); ok {
			out[name] = append([]byte(nil), data...)
		}
	}
	return out
}

// Equal implements Cacheable: whether both values are stored alike.
func (e Entity[T]) Equal(x, y T) bool {
	px, errX := encodeValue(x, nil)
	py, errY := encodeValue(y, nil)
	return errX == nil && errY == nil && maps.Equal(px, py)
}

// Written implements Cacheable.
func (e Entity[T]) Written(base *Version[T], value T) (any, error) {
	d, err := e.diff(base, value)
	return entityCarry{d.after}, err
}
