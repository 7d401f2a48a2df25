// Package format is the format of messages: azconc's envelope, which carries an id and counts, the formats of other
// senders, packed bodies, and the facts about a poison message. It sends no requests.
package format

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// Encoding is how a body is represented as the text of a message; see idempotent.Encoding.
type Encoding string

// The encodings.
const (
	Envelope Encoding = "envelope"
	Base64   Encoding = "base64"
	Text     Encoding = "text"
	Auto     Encoding = "auto"
)

// MaxText is the maximum length of a message's text (REST: "Put Message", 64 KiB).
const MaxText = 64 << 10

// Room is how many bytes of an envelope are left for what happens to it: three counts of up to seven digits, and Buried.
const Room = 128

const envelopeVersion = 1

// ErrTooLarge reports that a body does not fit into a message.
var ErrTooLarge = errors.New("too large without a ClaimCheck")

// Message is a decoded message. For messages of other senders only body is known.
type Message struct {
	Version int               `json:"azconc"`
	ID      string            `json:"id"`
	Sent    time.Time         `json:"sent"`
	Headers map[string]string `json:"headers,omitempty"`
	Counts
	LastError string  `json:"last_error,omitempty"`
	Buried    bool    `json:"buried,omitempty"` // a copy of it may be in the poison queue
	Poison    *Poison `json:"poison,omitempty"`
	Text      string  `json:"text,omitempty"`   // the body if it is UTF-8
	Binary    []byte  `json:"binary,omitempty"` // otherwise
	Packed    *Packed `json:"packed,omitempty"` // in place of both if the body is too large

	Body []byte   `json:"-"`
	As   Encoding `json:"-"` // what it was decoded from
}

// Counts are what has happened to a message. Its marker stores those of a message that cannot carry them.
type Counts struct {
	Attempts   int `json:"attempts,omitempty"`
	Excused    int `json:"excused,omitempty"`    // deliveries that were not the message's fault
	Unfinished int `json:"unfinished,omitempty"` // starts of the handler whose outcome is unknown
}

// Believed returns the counts that a message carries, or none if its earlier deliveries do not explain them: its sender could
// otherwise keep it from ever being poison. A message that was moved from another queue begins again.
func (c Counts) Believed(deliveries int) Counts {
	earlier := deliveries - 1
	for _, n := range []int{c.Attempts, c.Excused, c.Unfinished} {
		if n < 0 || n > earlier {
			return Counts{}
		}
		earlier -= n
	}
	return c
}

// Decode decodes the text of a message. After an error, no retry will help.
func Decode(text string, as Encoding) (Message, error) {
	switch as {
	case Auto, "":
		return Detect(text), nil
	case Text:
		return Message{Body: []byte(text), As: Text}, nil
	case Base64:
		body, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return Message{}, fmt.Errorf("the message is not base64: %w", err)
		}
		return Message{Body: body, As: Base64}, nil
	case Envelope:
		e, ok := openEnvelope(text)
		if !ok {
			return Message{}, errors.New("the message is not an azconc envelope")
		}
		return e, nil
	}
	return Message{}, Unknown(as)
}

func Detect(text string) Message {
	if e, ok := openEnvelope(text); ok {
		return e
	}
	if body, err := base64.StdEncoding.DecodeString(text); err == nil && len(body) > 0 && utf8.Valid(body) {
		return Message{Body: body, As: Base64}
	}
	return Message{Body: []byte(text), As: Text}
}

// openEnvelope decodes an envelope. A text that cannot be decoded without loss, because data follows the envelope or
// its strings contain a lone surrogate, is not an envelope: two different ids could be decoded as the same one.
func openEnvelope(text string) (e Message, ok bool) {
	if !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") {
		return Message{}, false
	}
	if err := json.Unmarshal([]byte(text), &e); err != nil || e.Version != envelopeVersion || e.ID == "" {
		return Message{}, false
	}
	if hasLoneSurrogate(text) {
		return Message{}, false
	}
	e.As, e.Body = Envelope, e.Binary
	if e.Binary == nil {
		e.Body = []byte(e.Text)
	}
	return e, true
}

var (
	surrogate      = regexp.MustCompile(`\\u[dD][89a-fA-F]`)
	surrogatePairs = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)
)

// hasLoneSurrogate reports whether JSON contains an escaped lone surrogate, which encoding/json replaces by U+FFFD.
func hasLoneSurrogate(text string) bool {
	if !surrogate.MatchString(text) {
		return false
	}
	text = strings.ReplaceAll(text, `\\`, "") // escaped backslashes
	return surrogate.MatchString(surrogatePairs.ReplaceAllString(text, ""))
}

// Encode returns the text of a message. Unless it is an envelope, everything but the body is lost.
func (e Message) Encode(as Encoding) (string, error) {
	if len(e.Body) > MaxText { // no text is shorter
		return "", fmt.Errorf("the body has %d bytes, more than the service's limit of %d for a message: %w", len(e.Body), MaxText, ErrTooLarge)
	}
	var text string
	switch as {
	case Text:
		if !utf8.Valid(e.Body) || bytes.ContainsFunc(e.Body, ForbiddenInXML) {
			return "", errors.New("the body has bytes that a text message cannot carry: use Base64 or Envelope")
		}
		text = string(e.Body)
	case Base64:
		text = base64.StdEncoding.EncodeToString(e.Body)
	default:
		e.Version, e.Text, e.Binary = envelopeVersion, "", nil
		switch {
		case e.Packed != nil: // it says where the body is
		case utf8.Valid(e.Body):
			e.Text = string(e.Body)
		default:
			e.Binary = e.Body
		}
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(e); err != nil {
			return "", err
		}
		text = jsonInXML.Replace(string(bytes.TrimSpace(b.Bytes())))
	}
	if len(text) > MaxText {
		return "", fmt.Errorf("the message has %d bytes as %s, more than the service's limit of %d: %w", len(text), as, MaxText, ErrTooLarge)
	}
	return text, nil
}

// EncodeNew returns the text of a message to be sent, in which an envelope has room for what happens to it.
func (e Message) EncodeNew(as Encoding) (string, error) {
	text, err := e.Encode(as)
	if err == nil && as == Envelope && len(text) > MaxText-Room {
		err = fmt.Errorf("the message has %d bytes as %s, more than the service's limit of %d, of which %d are kept for counts: %w", len(text), as, MaxText, Room, ErrTooLarge)
	}
	return text, err
}

// HasRoom reports whether an envelope, decoded from text, has room for what happens to it. Other producers may leave
// none.
func (e Message) HasRoom(text string) bool {
	if 2*len(text) <= MaxText-2*Room { // Encode may escape characters, and add a time
		return true
	}
	e.Counts, e.LastError, e.Buried = Counts{}, "", false
	_, err := e.EncodeNew(Envelope)
	return err == nil
}

// EncodeCounts returns the text of an envelope that has room for its counts: without the last error, if that does not fit.
func (e Message) EncodeCounts() (string, error) {
	text, err := e.Encode(Envelope)
	if err != nil {
		e.LastError = ""
		text, err = e.Encode(Envelope)
	}
	return text, err
}

// ForbiddenInXML reports whether XML 1.0 cannot represent a character (W3C: "Extensible Markup Language 1.0",
// production 2).
func ForbiddenInXML(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
}

// jsonInXML escapes characters that are valid in JSON but not in XML. In JSON these occur only in strings; control
// characters are always escaped there.
var jsonInXML = strings.NewReplacer("\uFFFE", `\ufffe`, "\uFFFF", `\uffff`)

func Unknown(e Encoding) error {
	return fmt.Errorf("encoding %q is none of %s, %s, %s, %s", e, Envelope, Base64, Text, Auto)
}

// Poison records why a message went to the poison queue, and where it came from.
type Poison struct {
	Reason     string    `json:"reason"`
	Queue      string    `json:"queue"`
	MessageID  string    `json:"message_id"`
	Inserted   time.Time `json:"inserted"`
	Expires    time.Time `json:"expires,omitzero"` // of the original
	Deliveries int       `json:"deliveries"`
}

// maxReason keeps an error's text from displacing the body.
const maxReason = 1 << 10

func Clip(s string) string {
	if len(s) > maxReason {
		return strings.ToValidUTF8(s[:maxReason], "") + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// PoisonText returns the text of a poison message. That of an envelope includes the reason. Any other
// text, including one that could not be decoded, is kept byte for byte: a reader of the queue can read its poison queue
// too, and redrive.Run restores what was sent. So is an envelope that has no room for the reason.
func PoisonText(raw string, e Message, p *Poison) string {
	if e.As == Envelope {
		e.Poison, e.Buried = p, false
		if text, err := e.Encode(Envelope); err == nil {
			return text
		}
	}
	return raw
}
