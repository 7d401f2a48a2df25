package manual

import (
	"time"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/idempotent/internal/format"
)

// OpenResult is what the text of a message holds.
type OpenResult struct {
	Encoding idempotent.Encoding // Envelope, Base64 or Text

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
func Open(text string, as idempotent.Encoding) (OpenResult, error) {
	e, err := format.Decode(text, format.Encoding(as))
	if err != nil {
		return OpenResult{}, err
	}
	o := OpenResult{Encoding: idempotent.Encoding(e.As), Key: e.ID, Headers: e.Headers, Sent: e.Sent, Attempts: e.Attempts, LastError: e.LastError, Body: e.Body}
	if e.Poison != nil {
		o.Reason = e.Poison.Reason
	}
	if p := e.Packed; p != nil && p.Blob != "" {
		o.Body, o.Blob = nil, p.Container+"/"+p.Blob
	} else if p != nil {
		o.Body, err = p.Inflate()
	}
	return o, err
}
