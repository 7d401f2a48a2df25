package edm

import (
	"bytes"
	"encoding/json"
)

// Level is the amount of metadata in a response.
type Level string

const (
	NoMetadata      Level = "nometadata"
	MinimalMetadata Level = "minimalmetadata"
	FullMetadata    Level = "fullmetadata"
)

// Object is a JSON object with ordered members.
type Object struct{ members []member }

type member struct {
	name  string
	value json.RawMessage
}

func (o *Object) Add(name string, value json.RawMessage) {
	o.members = append(o.members, member{name, value})
}

// MarshalJSON implements json.Marshaler. It must be called directly: json.Marshal would escape characters that the
// service does not escape.
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
