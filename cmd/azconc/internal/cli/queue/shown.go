package queue

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/idempotent/manual"
)

// messageShown is a message as receive and peek print it.
type messageShown struct {
	MessageID    string            `json:"message_id"`
	PopReceipt   string            `json:"pop_receipt,omitempty"`
	Inserted     string            `json:"inserted"`
	Expires      string            `json:"expires"`
	NextVisible  string            `json:"next_visible,omitempty"`
	DequeueCount int64             `json:"dequeue_count"`
	ID           string            `json:"id,omitempty"`
	Sent         string            `json:"sent,omitempty"`
	Headers      map[string]string `json:"headers,omitempty"`
	Attempts     int               `json:"attempts,omitempty"`
	LastError    string            `json:"last_error,omitempty"`
	Reason       string            `json:"reason,omitempty"`
	Blob         string            `json:"blob,omitempty"`
	Text         string            `json:"text"`
	Base64       string            `json:"base64,omitempty"` // of a body that is not UTF-8, instead of Text
}

// open fills in what the text of a message holds. A text that is not what encoding says is shown as it is.
func (m *messageShown) open(text, encoding string) {
	as := idempotent.Auto
	switch encoding {
	case "text":
		m.Text = text
		return
	case "base64":
		as = idempotent.Base64
	}
	o, err := manual.Open(text, as)
	if err != nil {
		o = manual.OpenResult{Body: []byte(text)}
	}
	m.ID, m.Sent, m.Headers, m.Attempts, m.LastError, m.Reason, m.Blob = o.Key, show.Time(o.Sent), o.Headers, o.Attempts, o.LastError, o.Reason, o.Blob
	if utf8.Valid(o.Body) {
		m.Text = string(o.Body)
	} else {
		m.Base64 = base64.StdEncoding.EncodeToString(o.Body)
	}
}

func (m *messageShown) print(w io.Writer) {
	show.Fields(w, "message", m.MessageID, "receipt", m.PopReceipt, "visible", m.NextVisible, "inserted", m.Inserted,
		"expires", m.Expires, "deliveries", fmt.Sprint(m.DequeueCount), "id", m.ID, "sent", m.Sent)
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		show.Fields(w, "header", name+"="+m.Headers[name])
	}
	if m.Attempts > 0 {
		show.Fields(w, "attempts", fmt.Sprint(m.Attempts), "last error", m.LastError)
	}
	show.Fields(w, "reason", m.Reason, "blob", m.Blob, "base64", m.Base64)
}
