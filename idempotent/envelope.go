package idempotent

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
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

// maxText is the maximum length of a message's text (REST: "Put Message", 64 KiB).
const maxText = 64 << 10

const envelopeVersion = 1

// ErrTooLarge reports that a body does not fit into a message, and that the Producer has no ClaimCheck to store it.
var ErrTooLarge = errors.New("too large without a ClaimCheck")

// envelope is a decoded message. For messages of other senders only body is known.
type envelope struct {
	Version  int               `json:"azconc"`
	ID       string            `json:"id"`
	Sent     time.Time         `json:"sent"`
	Headers  map[string]string `json:"headers,omitempty"`
	Attempts int               `json:"attempts,omitempty"`
	Excused  int               `json:"excused,omitempty"` // deliveries that were not the message's fault
	// Unfinished counts starts of the handler whose outcome is unknown.
	Unfinished int       `json:"unfinished,omitempty"`
	LastError  string    `json:"last_error,omitempty"`
	Freed      string    `json:"freed,omitempty"` // the Token of the delivery that was given back
	Poison     *poisoned `json:"poison,omitempty"`
	Text       string    `json:"text,omitempty"`   // the body if it is UTF-8
	Binary     []byte    `json:"binary,omitempty"` // otherwise
	Packed     *packed   `json:"packed,omitempty"` // in place of both if the body is too large

	body []byte
	as   Encoding // what it was decoded from
}

// decode decodes the text of a message. After an error, no retry will help.
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
			return envelope{}, errors.New("the message is not an azconc envelope")
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

// openEnvelope decodes an envelope. A text that cannot be decoded without loss, because data follows the envelope or
// its strings contain a lone surrogate, is not an envelope: two different ids could be decoded as the same one.
func openEnvelope(text string) (e envelope, ok bool) {
	if !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") {
		return envelope{}, false
	}
	if err := json.Unmarshal([]byte(text), &e); err != nil || e.Version != envelopeVersion || e.ID == "" {
		return envelope{}, false
	}
	if hasLoneSurrogate(text) {
		return envelope{}, false
	}
	e.as, e.body = Envelope, e.Binary
	if e.Binary == nil {
		e.body = []byte(e.Text)
	}
	return e, true
}

// hasLoneSurrogate reports whether JSON contains an escaped lone surrogate, which encoding/json replaces by U+FFFD.
func hasLoneSurrogate(text string) bool {
	for {
		i := strings.IndexByte(text, '\\')
		if i < 0 {
			return false
		}
		text = text[i:]
		r, ok := escapedRune(text)
		switch {
		case !ok:
			text = text[2:] // of two characters, such as \n: valid JSON ends in no backslash
		case !utf16.IsSurrogate(r):
			text = text[6:]
		default:
			low, _ := escapedRune(text[6:])
			if utf16.DecodeRune(r, low) == utf8.RuneError {
				return true
			}
			text = text[12:]
		}
	}
}

// escapedRune decodes the \uXXXX with which text begins.
func escapedRune(text string) (r rune, ok bool) {
	if len(text) < 6 || text[:2] != `\u` {
		return 0, false
	}
	n, err := strconv.ParseUint(text[2:6], 16, 16)
	return rune(n), err == nil
}

// encode returns the text of a message. Unless it is an envelope, everything but the body is lost.
func (e envelope) encode(as Encoding) (string, error) {
	var text string
	switch as {
	case Text:
		if !utf8.Valid(e.body) || bytes.ContainsFunc(e.body, forbiddenInXML) {
			return "", errors.New("the body has bytes that a text message cannot carry: use Base64 or Envelope")
		}
		text = string(e.body)
	case Base64:
		text = base64.StdEncoding.EncodeToString(e.body)
	default:
		e.Version, e.Text, e.Binary = envelopeVersion, "", nil
		switch {
		case e.Packed != nil: // it says where the body is
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
		text = jsonInXML.Replace(string(bytes.TrimSpace(b.Bytes())))
	}
	if len(text) > maxText {
		return "", fmt.Errorf("the message has %d bytes as %s, more than the service's limit of %d: %w", len(text), as, maxText, ErrTooLarge)
	}
	return text, nil
}

// forbiddenInXML reports whether XML 1.0 cannot represent a character (W3C: "Extensible Markup Language 1.0",
// production 2).
func forbiddenInXML(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
}

// jsonInXML escapes characters that are valid in JSON but not in XML. In JSON these occur only in strings; control
// characters are always escaped there.
var jsonInXML = strings.NewReplacer("\uFFFE", `\ufffe`, "\uFFFF", `\uffff`)

func checkEncoding(e Encoding) error {
	return fmt.Errorf("encoding %q is none of %s, %s, %s, %s", e, Envelope, Base64, Text, Auto)
}

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
	e, err := decode(text, as)
	if err != nil {
		return Opened{}, err
	}
	o := Opened{Encoding: e.as, Key: e.ID, Headers: e.Headers, Sent: e.Sent, Attempts: e.Attempts, LastError: e.LastError, Body: e.body}
	if e.Poison != nil {
		o.Reason = e.Poison.Reason
	}
	if p := e.Packed; p != nil && p.Blob != "" {
		o.Body, o.Blob = nil, p.Container+"/"+p.Blob
	} else if p != nil {
		o.Body, err = p.unpack(p.Gzip, true)
	}
	return o, err
}
