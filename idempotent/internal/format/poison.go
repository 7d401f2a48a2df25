package format

import (
	"strings"
	"time"
)

// Poison records why a message went to the poison queue, and where it came from.
type Poison struct {
	Reason     string    `json:"reason"`
	Queue      string    `json:"queue"`
	MessageID  string    `json:"message_id"`
	Inserted   time.Time `json:"inserted"`
	Expires    time.Time `json:"expires,omitzero"` // of the original
	Deliveries int       `json:"deliveries"`
	Encoding   Encoding  `json:"encoding"` // of the original
}

// maxReason keeps an error's text from displacing the body.
const maxReason = 1 << 10

func Clip(s string) string {
	if len(s) > maxReason {
		return strings.ToValidUTF8(s[:maxReason], "") + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// PoisonText returns the text of a poison message, and whether it includes the reason. An envelope does. Any other
// text, including one that could not be decoded, is kept byte for byte: a reader of the queue can read its poison queue
// too, and redrive.Run restores what was sent. So is an envelope that has no room for the reason.
func PoisonText(raw string, e Message, p *Poison) (text string, carried bool) {
	if e.As == Envelope {
		e.Poison, e.Freed = p, ""
		if text, err := e.Encode(Envelope); err == nil {
			return text, true
		}
	}
	return raw, false
}
