package aztest

import (
	"bytes"
	"encoding/json"
	"strings"
)

// metadataLevel is how much an answer says about itself.
type metadataLevel string

const (
	noMetadata      metadataLevel = "nometadata"
	minimalMetadata metadataLevel = "minimalmetadata"
	fullMetadata    metadataLevel = "fullmetadata"
)

// metadataOfRequest reads what the caller asks for: $format counts before Accept.
func metadataOfRequest(r *request) metadataLevel {
	format := r.query.Get("$format")
	if format == "" {
		format = r.header.Get("Accept")
	}
	for _, level := range []metadataLevel{noMetadata, fullMetadata} {
		if strings.Contains(strings.ToLower(format), "odata="+string(level)) {
			return level
		}
	}
	return minimalMetadata
}

// object is a JSON object whose members have an order.
type object struct{ members []member }

type member struct {
	name  string
	value json.RawMessage
}

func (o *object) add(name string, value json.RawMessage) {
	o.members = append(o.members, member{name, value})
}

// MarshalJSON implements json.Marshaler. It is not reached through json.Marshal, which would escape what the service
// does not.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o.members {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quote(m.name))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func jsonAnswer(status int, level metadataLevel, o object) *answer {
	a := ok(status).set("Content-Type", "application/json;odata="+string(level)+";streaming=true;charset=utf-8")
	a.body, _ = o.MarshalJSON()
	return a
}

// list makes a the answer to a query.
func (a *answer) list(level metadataLevel, metadata string, page []object) *answer {
	var values bytes.Buffer
	values.WriteByte('[')
	for i, item := range page {
		if i > 0 {
			values.WriteByte(',')
		}
		text, _ := item.MarshalJSON()
		values.Write(text)
	}
	values.WriteByte(']')
	var o object
	if level != noMetadata {
		o.add("odata.metadata", quote(accountURL()+"/"+metadata))
	}
	o.add("value", values.Bytes())
	full := jsonAnswer(a.status, level, o)
	a.body = full.body
	return a.set("Content-Type", full.header.Get("Content-Type"))
}
