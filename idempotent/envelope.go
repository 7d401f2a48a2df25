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

// Encoding is how the text of a queue message is made of its body. No encoding changes a body on its way: what a text cannot
// carry is escaped or refused.
type Encoding string

// The encodings.
const (
	// Envelope is JSON of azconc's own. It carries an id, by which duplicates are known, headers, and how often the message was
	// tried. Any body fits: one that is not UTF-8 travels as base64. It is the default of a Producer.
	Envelope Encoding = "envelope"
	// Base64 is what Azure Functions and the older SDKs expect. It carries nothing but the body.
	Base64 Encoding = "base64"
	// Text is the body as it is. A body that is not UTF-8, or has characters that XML 1.0 cannot carry (U+FFFE, U+FFFF and
	// control characters other than tab and line ends), is refused.
	Text Encoding = "text"
	// Auto is for receiving only: an envelope if it is one; else base64 if it is that and decodes to UTF-8; else text. A
	// text that happens to look like base64, such as "test", is decoded too: name the encoding if it can occur.
	Auto Encoding = "auto"
)

// maxText is how long the text of a message may be (REST: "Put Message", 64 KiB).
const maxText = 64 << 10

const envelopeVersion = 1

// ErrTooLarge says that a body does not fit into a message, and that the Producer has no ClaimCheck to put it into.
var ErrTooLarge = errors.New("too large without a ClaimCheck")

// envelope is a message as azconc sees it. Of messages of other senders only body is known.
type envelope struct {
	Version  int               `json:"azconc"`
	ID       string            `json:"id"`
	Sent     time.Time         `json:"sent"`
	Headers  map[string]string `json:"headers,omitempty"`
	Attempts int               `json:"attempts,omitempty"`
	Excused  int               `json:"excused,omitempty"` // deliveries that were not the message's fault
	// Unfinished counts starts of the handler of which nothing is known but that they happened.
	Unfinished int       `json:"unfinished,omitempty"`
	LastError  string    `json:"last_error,omitempty"`
	Freed      string    `json:"freed,omitempty"` // the Token of the delivery that gave it back
	Poison     *poisoned `json:"poison,omitempty"`
	Text       string    `json:"text,omitempty"`   // the body if it is UTF-8
	Binary     []byte    `json:"binary,omitempty"` // otherwise
	Packed     *packed   `json:"packed,omitempty"` // instead of both if the body is too large

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

// openEnvelope reads an envelope. A text that cannot be read without loss, because something follows the envelope or its
// strings hold half a surrogate pair, is none: two such ids would be read as one.
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

// hasLoneSurrogate tells whether JSON has an escape of half a surrogate pair, which encoding/json replaces by U+FFFD.
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

// escapedRune reads the \uXXXX that text begins with.
func escapedRune(text string) (r rune, ok bool) {
	if len(text) < 6 || text[:2] != `\u` {
		return 0, false
	}
	n, err := strconv.ParseUint(text[2:6], 16, 16)
	return rune(n), err == nil
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
		text = jsonInXML.Replace(string(bytes.TrimSpace(b.Bytes())))
	}
	if len(text) > maxText {
		return "", fmt.Errorf("the message has %d bytes as %s, more than the %d that the service takes: %w", len(text), as, maxText, ErrTooLarge)
	}
	return text, nil
}

// forbiddenInXML are the characters that XML 1.0 has no way to write (W3C: "Extensible Markup Language 1.0", production 2).
func forbiddenInXML(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
}

// jsonInXML escapes what JSON may hold and XML may not. In JSON these characters only occur in strings; control characters are
// escaped there anyway.
var jsonInXML = strings.NewReplacer("\uFFFE", `\ufffe`, "\uFFFF", `\uffff`)

func checkEncoding(e Encoding) error {
	return fmt.Errorf("encoding %q is none of %s, %s, %s, %s", e, Envelope, Base64, Text, Auto)
}
