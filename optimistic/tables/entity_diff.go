package tables

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/protocol"
)

// Limits of the service (REST: "Understanding the Table service data model"). Sizes are in bytes.
const (
	maxEntity        = 1 << 20
	maxProperties    = 252 // in addition to PartitionKey, RowKey and Timestamp
	maxPropertyName  = 255 // characters
	maxPropertyValue = 64 << 10
)

// entityDiff is a change of an entity's properties.
type entityDiff struct {
	before  Properties // as stored, without the lineage
	set     Properties // new or different
	after   Properties // after the change
	removed bool       // some properties were removed
}

func (d entityDiff) empty() bool { return len(d.set) == 0 && !d.removed }

// compare returns the difference between was and now. Properties that neither names are kept.
func (d *entityDiff) compare(was, now Properties) {
	d.set, d.after = Properties{}, Properties{}
	maps.Copy(d.after, d.before)
	for name, p := range now {
		if old, ok := was[name]; !ok || old != p {
			d.set[name], d.after[name] = p, p
		}
	}
	for name := range was {
		if _, still := now[name]; still {
			continue
		}
		if _, stored := d.before[name]; stored {
			delete(d.after, name)
			d.removed = true
		}
	}
}

// changeOf compares value, member by member, with the value that its type decodes from the stored properties. So a
// member that the change has not touched counts as unchanged, whatever its spelling.
func changeOf(before Properties, exists bool, value any, partition, row string) (entityDiff, error) {
	d := entityDiff{before: before}
	now, err := encodeValue(value, before)
	if err != nil {
		return d, err
	}
	if err := takeKeys(now, partition, row); err != nil {
		return d, err
	}
	was := Properties{}
	if t := reflect.TypeOf(value); exists && t != nil {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		decoded := reflect.New(t)
		if err := decodeInto(storedEntity{partition: partition, row: row, properties: before}, decoded.Interface()); err != nil {
			return d, err
		}
		// The zero value of a member that is not stored may be no property, as a time's is not: it was not there.
		was, _ = encodeValue(decoded.Elem().Interface(), before)
	}
	d.compare(was, now)
	return d, nil
}

// takeKeys removes the members of a value that are not properties, and refuses a value with the keys of another entity.
func takeKeys(p Properties, partition, row string) error {
	for name, want := range map[string]string{"PartitionKey": partition, "RowKey": row} {
		if given, ok := p[name]; ok && given.Value != "" && given.Value != want {
			return fmt.Errorf("%s is %q in the value and %q in the address: keys cannot be changed", name, given.Value, want)
		}
	}
	for _, name := range systemProperties {
		delete(p, name)
	}
	for _, own := range []string{optimistic.LineageKey, optimistic.OperationsKey} {
		if _, taken := p[own]; taken {
			return fmt.Errorf("property %q is azconc's own; choose another name", own)
		}
	}
	return nil
}

// body returns the request's body: all properties, or only those that are set, with the lineage, which is shortened to
// the room that they leave in the 1 MiB. A shorter lineage proves less, but never anything wrong. The operations are
// not shortened.
func (d entityDiff) body(partition, row string, lineage protocol.Lineage, whole bool) ([]byte, error) {
	own := min(len(lineage.Writes), 1) + min(len(lineage.Operations), 1)
	size, err := checkEntity(partition, row, d.after, own)
	if err != nil {
		return nil, err
	}
	send := Properties{}
	if whole {
		maps.Copy(send, d.after)
	} else {
		maps.Copy(send, d.set)
	}
	if len(lineage.Operations) > 0 {
		p := Property{EDMString, lineage.OperationsString()}
		if size += p.size(optimistic.OperationsKey); size > maxEntity {
			return nil, fmt.Errorf("the entity takes %d bytes of %d with the %d operations that have to be remembered (OperationID)", size, maxEntity, len(lineage.Operations))
		}
		send[optimistic.OperationsKey] = p
	}
	if len(lineage.Writes) > 0 {
		// A merge without any entry would leave the old lineage in place, which would then prove that this write was
		// not applied.
		text := lineage.Fit(min(maxPropertyValue/2, (maxEntity-size-12-2*len(optimistic.LineageKey))/2))
		if text == "" {
			return nil, fmt.Errorf("the entity takes %d bytes of %d, which leaves no room for a lineage (SendOptions.NoLineage does without)", size, maxEntity)
		}
		send[optimistic.LineageKey] = Property{EDMString, text}
	}
	return encodeEntity(partition, row, send)
}

// checkEntity returns an error for an entity that the service would refuse, with its size or count and the limit. It
// returns the size in bytes without the lineage. own is the number of properties that azconc adds.
func checkEntity(partition, row string, p Properties, own int) (int, error) {
	if len(p)+own > maxProperties {
		return 0, fmt.Errorf("the entity has %d properties, and %d for the lineage and the operations; the service takes %d (SendOptions.NoLineage does without a lineage)", len(p), own, maxProperties)
	}
	size := 4 + utf16Size(partition) + utf16Size(row)
	for name, one := range p {
		if name == "" || utf16Size(name) > 2*maxPropertyName {
			return 0, fmt.Errorf("property %.40q: a name has 1 to %d characters", name, maxPropertyName)
		}
		if n := one.size(name) - 12 - utf16Size(name); n > maxPropertyValue {
			return 0, fmt.Errorf("property %q takes %d bytes; the service takes %d", name, n, maxPropertyValue)
		}
		size += one.size(name)
	}
	if size > maxEntity {
		return 0, fmt.Errorf("the entity takes %d bytes; the service takes %d", size, maxEntity)
	}
	return size, nil
}

// encodeEntity encodes an entity for the SDK, which converts numbers to floating point: see Property.write.
func encodeEntity(partition, row string, p Properties) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"PartitionKey":%s,"RowKey":%s`, quoted(partition), quoted(row))
	for _, name := range p.names() {
		if ownedByProtocol(name) || strings.ContainsAny(name, "\x00") {
			return nil, fmt.Errorf("property %q: the name belongs to the protocol", name)
		}
		b.WriteByte(',')
		if err := p[name].write(&b, name); err != nil {
			return nil, fmt.Errorf("property %q: %w", name, err)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
