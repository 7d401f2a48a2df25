package idempotent

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Encoding is how the text of a queue message is made of its body.
type Encoding string

// The encodings.
const (
	// Envelope is JSON of azconc's own: it carries an id, by which duplicates are known, and how often the message was
	// tried. It is the default of a Producer.
	Envelope Encoding = "envelope"
	// Base64 is what Azure Functions and the older SDKs want. It carries nothing but the body.
	Base64 Encoding = "base64"
	// Text is the body as it is, which must be UTF-8 without characters that XML cannot carry.
	Text Encoding = "text"
	// Auto is for receiving only: an envelope if it is one; else base64 if it is that and decodes to UTF-8; else text. A
	// text that happens to look like base64, such as "test", is taken for that: name the encoding if it can occur.
	Auto Encoding = "auto"
)

// maxText is how long the text of a message may be (REST: "Put Message", 64 KiB).
const maxText = 64 << 10

const envelopeVersion = 1

// ErrTooLarge says that a body does not fit into a message, and that the Producer has no ClaimCheck to put it into.
var ErrTooLarge = errors.New("too large without a ClaimCheck")

// envelope is a message as azconc sees it. Only Body comes from messages that others have sent.
type envelope struct {
	Version   int       `json:"azconc"`
	ID        string    `json:"id"`
	Sent      time.Time `json:"sent"`
	Attempts  int       `json:"attempts,omitempty"`
	Excused   int       `json:"excused,omitempty"` // deliveries that were not the message's fault
	LastError string    `json:"last_error,omitempty"`
	Freed     string    `json:"freed,omitempty"` // the Token of the delivery that gave it back
	Poison    *poisoned `json:"poison,omitempty"`
	Text      string    `json:"text,omitempty"`   // the body if it is UTF-8
	Binary    []byte    `json:"binary,omitempty"` // otherwise
	Packed    *packed   `json:"packed,omitempty"` // instead of both if the body is too large

	body []byte
	as   Encoding // what it was decoded from
}

// decode reads the text of a message. An error means that no retry will help.
func decode(text string, as Encoding) (envelope, error) {
	switch as {
	case Auto, "":
		return detect(text), nil
	case Text:
		return envelope{body: []byte(text), as: Text}, nil
	case Base64:
		body, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return envelope{}, fmt.Errorf("the message is not base64: %w", err)
		}
		return envelope{body: body, as: Base64}, nil
	case Envelope:
		e, ok := openEnvelope(text)
		if !ok {
			return envelope{}, errors.New("the message is not an envelope of azconc's")
		}
		return e, nil
	}
	return envelope{}, checkEncoding(as)
}

func detect(text string) envelope {
	if e, ok := openEnvelope(text); ok {
		return e
	}
	if body, err := base64.StdEncoding.DecodeString(text); err == nil && len(body) > 0 && utf8.Valid(body) {
		return envelope{body: body, as: Base64}
	}
	return envelope{body: []byte(text), as: Text}
}

func openEnvelope(text string) (e envelope, ok bool) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	if err := d.Decode(&e); err != nil || e.Version != envelopeVersion || e.ID == "" {
		return envelope{}, false
	}
	e.as, e.body = Envelope, e.Binary
	if e.Binary == nil {
		e.body = []byte(e.Text)
	}
	return e, true
}

// encode makes the text of a message. What is beside the body is lost unless it is an envelope.
func (e envelope) encode(as Encoding) (string, error) {
	var text string
	switch as {
	case Text:
		if !utf8.Valid(e.body) || bytes.ContainsFunc(e.body, forbiddenInXML) {
			return "", errors.New("the body is not text that a message can carry as it is: use Base64 or Envelope")
		}
		text = string(e.body)
	case Base64:
		text = base64.StdEncoding.EncodeToString(e.body)
	default:
		e.Version, e.Text, e.Binary = envelopeVersion, "", nil
		switch {
		case e.Packed != nil: // says where the body is
		case utf8.Valid(e.body):
			e.Text = string(e.body)
		default:
			e.Binary = e.body
		}
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(e); err != nil {
			return "", err
		}
		text = string(bytes.TrimSpace(b.Bytes()))
	}
	if len(text) > maxText {
		return "", fmt.Errorf("the message has %d bytes as %s, more than the %d that the service takes: %w", len(text), as, maxText, ErrTooLarge)
	}
	return text, nil
}

// forbiddenInXML are the characters that XML 1.0 has no way to write.
func forbiddenInXML(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
}

func checkEncoding(e Encoding) error {
	return fmt.Errorf("encoding %q is none of %s, %s, %s, %s", e, Envelope, Base64, Text, Auto)
}
