package edm

import (
	"bytes"
	"encoding/json"
)

// Level is how much an answer says about itself.
type Level string

const (
	NoMetadata      Level = "nometadata"
	MinimalMetadata Level = "minimalmetadata"
	FullMetadata    Level = "fullmetadata"
)

// Object is a JSON object whose members have an order.
type Object struct{ members []member }

type member struct {
	name  string
	value json.RawMessage
}

func (o *Object) Add(name string, value json.RawMessage) {
	o.members = append(o.members, member{name, value})
}

// MarshalJSON implements json.Marshaler. It is not reached through json.Marshal, which would escape what the service
// does not.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o.members {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(Quote(m.name))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
