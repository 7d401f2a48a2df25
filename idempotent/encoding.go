package idempotent

import (
	"time"

	"github.com/azconc/azconc/idempotent/internal/format"
)

// Encoding is how a message body is represented as the text of a queue message. No encoding alters a body: what a text
// cannot carry is escaped or refused.
type Encoding string

// The encodings.
const (
	// Envelope is azconc's JSON format. It carries an id, by which duplicates are detected, headers, and the number of
	// attempts. It can carry any body: one that is not UTF-8 is encoded as base64. It is the default of a Producer.
	Envelope Encoding = "envelope"
	// Base64 is what Azure Functions and the older SDKs expect. It carries only the body.
	Base64 Encoding = "base64"
	// Text is the body itself. A body that is not UTF-8, or that contains characters which XML 1.0 cannot carry
	// (U+FFFE, U+FFFF and control characters other than tab and line ends), is refused.
	Text Encoding = "text"
	// Auto is for receiving only. A text is decoded as an envelope if it is one; otherwise as base64 if it is valid and
	// decodes to UTF-8; otherwise it is plain text. A text that happens to be valid base64, such as "test", is decoded
	// too: if that can occur, choose the encoding explicitly.
	Auto Encoding = "auto"
)

// Opened is the decoded text of a message.
type Opened struct {
	Encoding Encoding // Envelope, Base64 or Text

	// The following are known only for envelopes.
	Key       string // the sender's id
	Headers   map[string]string
	Sent      time.Time
	Attempts  int // failed attempts
	LastError string
	Reason    string // why it is in a poison queue

	Body []byte // nil when it is in Blob
	Blob string // container/name of the blob in which a ClaimCheck stores the body
}

// Open decodes the text of a message, for tools that show messages. It sends no request. It returns an error if the
// text is not in the given encoding, or a compressed body is damaged.
func Open(text string, as Encoding) (Opened, error) {
	e, err := format.Decode(text, format.Encoding(as))
	if err != nil {
		return Opened{}, err
	}
	o := Opened{Encoding: Encoding(e.As), Key: e.ID, Headers: e.Headers, Sent: e.Sent, Attempts: e.Attempts, LastError: e.LastError, Body: e.Body}
	if e.Poison != nil {
		o.Reason = e.Poison.Reason
	}
	if p := e.Packed; p != nil && p.Blob != "" {
		o.Body, o.Blob = nil, p.Container+"/"+p.Blob
	} else if p != nil {
		o.Body, err = p.Unpack(p.Gzip, true)
	}
	return o, err
}
