package tableservice

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/azconc/azconc/pkg/aztest/internal/edm"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

type entityKey struct{ partition, row string }

// entity is an entity as the service keeps it. It is never changed, only replaced.
type entity struct {
	entityKey
	timestamp  time.Time
	properties map[string]edm.Value
}

// etag returns the weak ETag: the Timestamp, percent-encoded.
func (e *entity) etag() string {
	return `W/"datetime'` + strings.ReplaceAll(e.timestamp.Format(edm.Ticks), ":", "%3A") + `'"`
}

// property returns a property; every entity also has PartitionKey, RowKey and Timestamp.
func (e *entity) property(name string) (edm.Value, bool) {
	switch name {
	case "PartitionKey":
		return edm.Value{Type: edm.String, Text: e.partition}, true
	case "RowKey":
		return edm.Value{Type: edm.String, Text: e.row}, true
	case "Timestamp":
		return edm.Value{Type: edm.DateTime, Text: e.timestamp.Format(edm.Ticks)}, true
	}
	p, ok := e.properties[name]
	return p, ok
}

func (e *entity) size() int {
	n := 4 + 2*len(e.partition) + 2*len(e.row)
	for name, p := range e.properties {
		n += p.Size(name)
	}
	return n
}

// object returns the entity as JSON. selected limits the properties; nil means all.
func (e *entity) object(t *tableState, level edm.Level, metadata string, selected []string) edm.Object {
	var o edm.Object
	if level != edm.NoMetadata {
		if metadata != "" {
			o.Add("odata.metadata", edm.Quote(t.account.Endpoint+"/$metadata#"+t.Name+metadata))
		}
		if level == edm.FullMetadata {
			link := t.Name + "(PartitionKey='" + escapeKey(e.partition) + "',RowKey='" + escapeKey(e.row) + "')"
			o.Add("odata.type", edm.Quote(t.account.Name+"."+t.Name))
			o.Add("odata.id", edm.Quote(t.account.Endpoint+"/"+link))
			o.Add("odata.etag", edm.Quote(e.etag()))
			o.Add("odata.editLink", edm.Quote(link))
		} else {
			o.Add("odata.etag", edm.Quote(e.etag()))
		}
	}
	names := selected
	if names == nil {
		names = append([]string{"PartitionKey", "RowKey", "Timestamp"}, slices.Sorted(maps.Keys(e.properties))...)
	}
	for _, name := range names {
		p, ok := e.property(name)
		switch {
		case !ok:
			o.Add(name, json.RawMessage("null")) // selected, but missing
			continue
		case name == "Timestamp" && level != edm.FullMetadata:
		case p.Annotated(level):
			o.Add(name+"@odata.type", edm.Quote(string(p.Type)))
		}
		o.Add(name, p.JSON())
	}
	return o
}

func escapeKey(key string) string { return url.PathEscape(strings.ReplaceAll(key, "'", "''")) }

// parseEntity parses the body of a write.
func parseEntity(body []byte) (key map[string]string, properties map[string]edm.Value, bad *storage.Answer) {
	var members map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(&members); err != nil || d.Decode(new(json.RawMessage)) != io.EOF {
		return nil, nil, invalidInput("The request body is not a JSON object.")
	}
	key, properties = map[string]string{}, map[string]edm.Value{}
	for name, raw := range members {
		if strings.HasPrefix(name, "odata.") || strings.HasSuffix(name, "@odata.type") || name == "Timestamp" {
			continue
		}
		var annotation string
		if a := members[name+"@odata.type"]; a != nil {
			if err := json.Unmarshal(a, &annotation); err != nil {
				return nil, nil, badValue(name)
			}
		}
		p, isNull, bad := parseProperty(name, raw, annotation)
		switch {
		case bad != nil:
			return nil, nil, bad
		case isNull:
			continue
		case name == "PartitionKey" || name == "RowKey":
			if p.Type != edm.String {
				return nil, nil, badValue(name)
			}
			key[name] = p.Text
			continue
		case len(name) > maxPropertyName:
			return nil, nil, Fail(http.StatusBadRequest, "PropertyNameTooLong", "The property name exceeds the maximum allowed length.")
		case !storage.Identifier(name) && !isASCIIless(name):
			return nil, nil, Fail(http.StatusBadRequest, "PropertyNameInvalid", "The property name is invalid.")
		}
		properties[name] = p
	}
	return key, properties, nil
}

// isASCIIless accepts names in other alphabets, which the service allows and identifier does not know.
func isASCIIless(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool { return r < 0x80 && !storage.Identifier("a"+string(r)) }) < 0
}

func badKey(key string) *storage.Answer {
	switch {
	case tooLong(key, maxKey):
		return Fail(http.StatusBadRequest, "KeyValueTooLarge", "The key value exceeds the maximum allowed size (1KB).")
	case strings.ContainsFunc(key, func(r rune) bool {
		return strings.ContainsRune(`/\#?`, r) || r < 0x20 || 0x7f <= r && r <= 0x9f
	}):
		return Fail(http.StatusBadRequest, "OutOfRangeInput", "The 'PartitionKey' or 'RowKey' parameter is out of range.")
	}
	return nil
}

func noSuchEntity() *storage.Answer {
	return Fail(http.StatusNotFound, "ResourceNotFound", "The specified resource does not exist.")
}

func (s *Service) getEntity(r *storage.Request, t *tableState, at tablePath) *storage.Answer {
	e := t.entities[entityKey{at.partition, at.row}]
	if e == nil {
		return noSuchEntity()
	}
	level := metadataOfRequest(r)
	return jsonAnswer(http.StatusOK, level, e.object(t, level, "/@Element", selectedOf(r))).Set("ETag", e.etag())
}

// writeEntity applies one write. before is called with the entity that it replaces, or nil, just before the change.
func (s *Service) writeEntity(r *storage.Request, t *tableState, at tablePath, before func(*entity)) *storage.Answer {
	if r.Method == http.MethodPost && !at.keyed {
		return s.insertEntity(r, t, before)
	}
	key := entityKey{at.partition, at.row}
	for _, k := range []string{key.partition, key.row} {
		if bad := badKey(k); bad != nil {
			return bad
		}
	}
	merge, remove := isMerge(r.Method, r.Header), r.Method == http.MethodDelete
	if !at.keyed || !merge && !remove && r.Method != http.MethodPut {
		return Fail(http.StatusMethodNotAllowed, "MethodNotAllowed", "The requested method is not allowed on the specified resource.")
	}
	// The keys in the URL count. Those in the body are ignored, as for every OData update.
	var properties map[string]edm.Value
	if !remove {
		var bad *storage.Answer
		if _, properties, bad = parseEntity(r.Body); bad != nil {
			return bad
		}
	}
	old := t.entities[key]
	match, conditional := r.Header["If-Match"]
	if remove && !conditional {
		return Fail(http.StatusBadRequest, "MissingRequiredHeader", "An HTTP header that's mandatory for this request is not specified. If-Match")
	}
	if bad := tableCondition(match, conditional, old); bad != nil {
		return bad
	}
	if remove {
		before(old)
		delete(t.entities, key)
		return storage.OK(http.StatusNoContent)
	}
	if merge && old != nil {
		merged := maps.Clone(old.properties)
		maps.Copy(merged, properties) // a merge cannot remove a property: null was dropped above
		properties = merged
	}
	e, bad := s.storeEntity(t, key, properties, func() { before(old) })
	if bad != nil {
		return bad
	}
	return storage.OK(http.StatusNoContent).Set("ETag", e.etag())
}

// tableCondition evaluates If-Match. Without the header, an update is an upsert.
func tableCondition(match []string, conditional bool, old *entity) *storage.Answer {
	if !conditional {
		return nil
	}
	value := strings.Join(match, ",")
	wellFormed := value == "*" || strings.HasPrefix(value, `W/"datetime'`) && strings.HasSuffix(value, `'"`) && strings.Count(value, `"`) == 2
	switch {
	case !wellFormed:
		return invalidInput(fmt.Sprintf("The etag value '%s' specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid.", value))
	case old == nil:
		return noSuchEntity()
	case strings.Contains(value, "''"): // it has the form of an ETag, but none can be like that
		return Fail(http.StatusPreconditionFailed, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.")
	case value != "*" && value != old.etag():
		return Fail(http.StatusPreconditionFailed, "UpdateConditionNotSatisfied", "The update condition specified in the request was not satisfied.")
	}
	return nil
}

func (s *Service) insertEntity(r *storage.Request, t *tableState, before func(*entity)) *storage.Answer {
	keys, properties, bad := parseEntity(r.Body)
	if bad != nil {
		return bad
	}
	for _, name := range []string{"PartitionKey", "RowKey"} {
		value, given := keys[name]
		if !given {
			return Fail(http.StatusBadRequest, "PropertiesNeedValue", "The values are not specified for all properties in the entity.")
		}
		if bad := badKey(value); bad != nil {
			return bad
		}
	}
	key := entityKey{keys["PartitionKey"], keys["RowKey"]}
	if t.entities[key] != nil {
		return Fail(http.StatusConflict, "EntityAlreadyExists", "The specified entity already exists.")
	}
	e, bad := s.storeEntity(t, key, properties, func() { before(nil) })
	if bad != nil {
		return bad
	}
	level := metadataOfRequest(r)
	location := s.Endpoint + "/" + t.Name + "(PartitionKey='" + escapeKey(key.partition) + "',RowKey='" + escapeKey(key.row) + "')"
	if noContent(r) {
		return storage.OK(http.StatusNoContent).Set("ETag", e.etag()).Set("Preference-Applied", "return-no-content").Set("Location", location).Set("DataServiceId", location)
	}
	return jsonAnswer(http.StatusCreated, level, e.object(t, level, "/@Element", nil)).Set("ETag", e.etag()).Set("Location", location)
}

func (s *Service) storeEntity(t *tableState, key entityKey, properties map[string]edm.Value, before func()) (*entity, *storage.Answer) {
	e := &entity{entityKey: key, properties: properties}
	switch {
	case len(properties) > maxProperties:
		return nil, Fail(http.StatusBadRequest, "TooManyProperties", "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties.")
	case e.size() > maxEntity:
		return nil, Fail(http.StatusBadRequest, "EntityTooLarge", "The entity is larger than the maximum allowed size (1MB).")
	}
	before()
	e.timestamp = s.stamp()
	t.entities[key] = e
	return e, nil
}

// Limits of the service (REST: "Understanding the Table service data model").
const (
	maxEntity       = 1 << 20
	maxProperties   = 252 // in addition to PartitionKey, RowKey and Timestamp
	maxPropertyName = 255
	maxValue        = 64 << 10
	maxKey          = 1 << 10
	maxBatch        = 4 << 20
	maxBatchOps     = 100
)

func tooLong(s string, limit int) bool { return 2*len(utf16.Encode([]rune(s))) > limit }

func badValue(name string) *storage.Answer {
	return Fail(http.StatusBadRequest, "InvalidInput", "An error occurred while processing this request. The value of property '"+name+"' is not of its type.")
}

// parseProperty parses a member of a JSON entity, with its annotation, if any. A null is no property.
func parseProperty(name string, raw json.RawMessage, annotation string) (p edm.Value, isNull bool, bad *storage.Answer) {
	text := strings.TrimSpace(string(raw))
	if text == "null" {
		return p, true, nil
	}
	quoted := text[0] == '"'
	if quoted {
		if err := json.Unmarshal(raw, &text); err != nil {
			return p, false, badValue(name)
		}
	}
	kind := edm.Type(annotation)
	if kind == "" {
		kind = edm.Implied(raw, quoted)
	}
	value, ok := edm.Canonical(kind, text, quoted)
	if !ok {
		return p, false, badValue(name)
	}
	if (kind == edm.String || kind == edm.Binary) && tooLarge(kind, value) {
		return p, false, Fail(http.StatusBadRequest, "PropertyValueTooLarge", "The property value exceeds the maximum allowed size (64KB).")
	}
	return edm.Value{Type: kind, Text: value}, false, nil
}

func tooLarge(kind edm.Type, value string) bool {
	if kind == edm.Binary {
		return base64.StdEncoding.DecodedLen(len(value)) > maxValue+2
	}
	return tooLong(value, maxValue)
}
