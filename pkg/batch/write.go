package batch

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// keys are those of an entity.
type keys struct{ partition, row string }

// keysOf returns the keys of the entities, or nil if they are not known.
func keysOf(actions []aztables.TransactionAction) []keys {
	all := make([]keys, len(actions))
	for i, a := range actions {
		var ok bool
		if all[i], ok = keysIn(a.Entity); !ok {
			return nil
		}
	}
	return all
}

// keysIn returns the keys of an entity. Usually it begins with them.
func keysIn(entity []byte) (k keys, ok bool) {
	if rest, found := bytes.CutPrefix(entity, []byte(`{"PartitionKey":"`)); found {
		if partition, rest, plain := plainString(rest); plain {
			if rest, found = bytes.CutPrefix(rest, []byte(`,"RowKey":"`)); found {
				if row, _, plain := plainString(rest); plain {
					return keys{string(partition), string(row)}, true
				}
			}
		}
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(entity, &all) != nil || json.Unmarshal(all["PartitionKey"], &k.partition) != nil || json.Unmarshal(all["RowKey"], &k.row) != nil {
		return keys{}, false
	}
	return k, k.partition != "" && k.row != ""
}

// plainString returns the rest of a string, which must have no escapes and at least one character, and what follows it.
func plainString(text []byte) (s, rest []byte, ok bool) {
	for i, c := range text {
		switch {
		case c == '"':
			return text[:i], text[i+1:], i > 0
		case c == '\\', c < ' ', c >= 0x7f:
			return nil, nil, false
		}
	}
	return nil, nil, false
}

const (
	standInKeys = "(PartitionKey='azconc',RowKey='azconc')"
	format      = "%24format=application%2Fjson%3Bodata%3Dminimalmetadata"
	partSize    = 512 // about what is written around an entity
)

// body returns the body of the transaction, with the boundaries and the URL of the stand-in that the SDK has written. It is what
// the SDK would have written for the actions, except that the entities are as they are.
func (o *order) body(given []byte) (body []byte, ok bool) {
	at := bytes.Index(given, []byte("\r\n\r\n--"))
	if at < 0 {
		return nil, false
	}
	head, rest := given[:at+4], given[at+4:]
	boundary, _, _ := bytes.Cut(rest, []byte("\r\n"))
	request := bytes.Index(rest, []byte("\r\n\r\nDELETE "))
	if request < 0 {
		return nil, false
	}
	part := rest[:request+4]
	target, rest, found := bytes.Cut(rest[request+len("\r\n\r\nDELETE "):], []byte(" HTTP/1.1\r\n"))
	table, query, known := bytes.Cut(target, []byte(standInKeys+"?"))
	end := bytes.LastIndex(rest, append([]byte("\r\n"), boundary...))
	plain, formatted := bytes.CutPrefix(query, []byte(format)) // the first of the query, which is sorted
	if !found || !known || !formatted || end < 0 {
		return nil, false
	}
	if plain = bytes.TrimPrefix(plain, []byte("&")); len(plain) > 0 {
		plain = append([]byte("?"), plain...)
	}
	size := len(given)
	for _, a := range o.actions {
		size += len(a.Entity) + len(part) + len(target) + partSize
	}
	body = append(make([]byte, 0, size), head...)
	for i, a := range o.actions {
		if i > 0 {
			body = append(body, "\r\n"...)
		}
		body = append(body, part...)
		w := operation{table: table, query: query, plain: plain, keys: o.keys[i], action: a}
		if body, ok = w.append(body); !ok {
			return nil, false
		}
	}
	return append(body, rest[end:]...), true
}

// operation is one operation of a transaction.
type operation struct {
	table, query, plain []byte // of the URL; plain is the query without the format
	keys                keys
	action              aztables.TransactionAction
}

// append appends the request.
func (w operation) append(b []byte) ([]byte, bool) {
	a := w.action
	switch a.ActionType {
	case aztables.TransactionTypeAdd:
		b = append(append(append(append(b, "POST "...), w.table...), '?'), w.query...)
		b = append(b, " HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\n"...)
		b = w.content(b)
		b = append(b, "Prefer: return-no-content\r\n"...)
	case aztables.TransactionTypeDelete:
		b = append(append(append(w.url(append(b, "DELETE "...)), '?'), w.query...), " HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\nDataServiceVersion: \r\nIf-Match: "...)
		if a.IfMatch == nil {
			b = append(b, '*')
		} else {
			b = append(b, *a.IfMatch...)
		}
		return append(b, "\r\nx-ms-version: \r\n\r\n"...), true
	case aztables.TransactionTypeUpdateMerge, aztables.TransactionTypeInsertMerge:
		b = w.conditional(append(b, "PATCH "...))
	case aztables.TransactionTypeUpdateReplace, aztables.TransactionTypeInsertReplace:
		b = w.conditional(append(b, "PUT "...))
	default:
		return nil, false
	}
	return append(append(b, "x-ms-version: \r\n\r\n"...), a.Entity...), true
}

func (w operation) url(b []byte) []byte {
	b = append(append(b, w.table...), "(PartitionKey='"...)
	b = append(append(b, url.PathEscape(w.keys.partition)...), "',RowKey='"...)
	return append(append(b, url.PathEscape(w.keys.row)...), "')"...)
}

// conditional appends the URL and the headers of a request that is conditional on the entity.
func (w operation) conditional(b []byte) []byte {
	b = append(append(w.url(b), w.plain...), " HTTP/1.1\r\nAccept: application/json\r\n"...)
	b = w.content(b)
	if match := w.action.IfMatch; match != nil {
		b = append(append(append(b, "If-Match: "...), *match...), "\r\n"...)
	}
	return b
}

func (w operation) content(b []byte) []byte {
	b = strconv.AppendInt(append(b, "Content-Length: "...), int64(len(w.action.Entity)), 10)
	return append(b, "\r\nContent-Type: application/json\r\nDataServiceVersion: \r\n"...)
}
