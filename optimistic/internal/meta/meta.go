// Package meta encodes the metadata of blobs, containers and queues, with the lineage in them.
package meta

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/ptr"
)

// Max is the largest total size of the names and values of a blob's metadata (REST: "Set Blob Metadata", 8 KB).
const Max = 8 << 10

// Split separates the lineage from the metadata in a response, and converts the names to lower case.
func Split(raw map[string]*string) (map[string]string, protocol.Lineage) {
	metadata := make(map[string]string, len(raw))
	var writes, operations string
	for name, value := range raw {
		switch {
		case strings.EqualFold(name, protocol.LineageKey):
			writes = ptr.Value(value)
		case strings.EqualFold(name, protocol.OperationsKey):
			operations = ptr.Value(value)
		default:
			metadata[strings.ToLower(name)] = ptr.Value(value)
		}
	}
	return metadata, protocol.ParseLineage(writes, operations)
}

// Merge returns base with set applied; an empty value removes the name.
func Merge(base, set map[string]string) map[string]string {
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

// Replace returns the metadata to store if value replaces before. An empty value removes the name, unless another
// writer has stored it empty: the service allows empty values.
func Replace(before, value map[string]string) map[string]string {
	replaced := make(map[string]string, len(value))
	for name, v := range value {
		name = strings.ToLower(name)
		if old, ok := before[name]; v != "" || ok && old == "" {
			replaced[name] = v
		}
	}
	return replaced
}

// Changed returns the metadata to store if value replaces before, the metadata of base, and their form in a request, with
// the lineage, and what of the lineage is in it. All are nil if there is nothing to write. A pair that another writer
// stored is sent back as it is; any other is validated.
func Changed(base protocol.State, before, value map[string]string, lineage protocol.Lineage) (changed map[string]string, raw map[string]*string, stored protocol.Lineage, err error) {
	if err := distinct(value); err != nil {
		return nil, nil, stored, err
	}
	value = Replace(before, value)
	if base.Exists && maps.Equal(value, before) && !lineage.Begins(base.Lineage) {
		return nil, nil, stored, nil
	}
	for name, v := range value {
		if old, stored := before[name]; stored && old == v {
			continue
		}
		if err := Validate(name, v); err != nil {
			return nil, nil, stored, err
		}
	}
	raw, stored, err = Join(value, lineage)
	return value, raw, stored, err
}

// Join adds the lineage to the metadata, and returns what of it is stored. The lineage is shortened to the part of the 8 KB that the caller's own
// metadata leave. A shorter lineage proves less, but never anything wrong. The operations are not shortened, because a
// forgotten operation would be carried out again: if they do not fit, Join returns an error.
func Join(metadata map[string]string, lineage protocol.Lineage) (raw map[string]*string, stored protocol.Lineage, err error) {
	out := make(map[string]*string, len(metadata)+2)
	size := 0
	for name, value := range metadata {
		size += len(name) + len(value)
		out[name] = &value
	}
	room := Max - size
	if n := len(lineage.Operations); n > 0 {
		text := lineage.OperationsString()
		if room -= len(protocol.OperationsKey) + len(text); room < 0 {
			return nil, stored, fmt.Errorf("metadata: %d bytes are %d too many in addition to the %d operations that have to be remembered (OperationID); the service takes %d",
				size, -room, n, Max)
		}
		out[protocol.OperationsKey], stored.Operations = &text, lineage.Operations
	}
	if len(lineage.Writes) == 0 {
		return out, stored, nil
	}
	if fitted := lineage.Fit(room - len(protocol.LineageKey)); fitted != "" {
		out[protocol.LineageKey], stored = &fitted, lineage
	}
	return out, stored, nil
}

// proofRoom is the room, in bytes, that a lineage needs to prove what became of a write: for about ten entries, so that
// the proof outlasts as many writes of others.
const proofRoom = 400

// Cramped returns the address of a resource if its metadata leave less than proofRoom for the lineage, or else nothing.
func Cramped(raw map[string]*string, address string) string {
	room := Max - len(protocol.LineageKey)
	for name, value := range raw {
		if name != protocol.LineageKey {
			room -= len(name) + len(*value)
		}
	}
	if room >= proofRoom {
		return ""
	}
	return address
}

// ValidateAll checks metadata that a caller sets.
func ValidateAll(metadata map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		if err := Validate(name, metadata[name]); err != nil {
			return err
		}
	}
	return distinct(metadata)
}

// distinct returns an error for names that differ only in their case, of which the service would keep one.
func distinct(metadata map[string]string) error {
	seen := make(map[string]string, len(metadata))
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		if other, twice := seen[strings.ToLower(name)]; twice {
			return fmt.Errorf("metadata: %q and %q are one name, because the service ignores their case: give one of them", other, name)
		}
		seen[strings.ToLower(name)] = name
	}
	return nil
}

// Validate returns an error for a name or a value that the service would refuse or a proxy would drop.
func Validate(name, value string) error {
	if strings.EqualFold(name, protocol.LineageKey) || strings.EqualFold(name, protocol.OperationsKey) {
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
