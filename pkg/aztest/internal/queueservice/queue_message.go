package queueservice

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

const (
	week           = 7 * 24 * time.Hour
	maxMessage     = 64 << 10 // of the text, encoded as it is stored (REST: "Put Message")
	defaultVisible = 30 * time.Second
)

// forever is the expiration time of a message with a time to live of -1, as the service shows it.
var forever = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// message is one message of a queue.
type message struct {
	id       string
	receipt  string
	text     string
	inserted time.Time
	expires  time.Time
	visible  time.Time // when it can be received
	dequeued int
}

// alive drops the messages that have expired. It does not look at them until the first one must have expired.
func (q *queueState) alive() []*message {
	now := time.Now()
	if now.Before(q.expiring) {
		return q.messages
	}
	q.expiring = forever
	q.messages = slices.DeleteFunc(q.messages, func(m *message) bool {
		if !now.Before(m.expires) {
			delete(q.byID, m.id)
			return true
		}
		q.expires(m)
		return false
	})
	return q.messages
}

// expires records when a message is to be dropped.
func (q *queueState) expires(m *message) {
	if m.expires.Before(q.expiring) {
		q.expiring = m.expires
	}
}

func (q *queueState) add(m *message) {
	if q.byID == nil {
		q.byID, q.expiring = map[string]*message{}, forever
	}
	q.messages, q.byID[m.id] = append(q.messages, m), m
	q.expires(m)
}

func (q *queueState) remove(m *message) {
	i := slices.Index(q.messages, m)
	q.messages = slices.Delete(q.messages, i, i+1)
	delete(q.byID, m.id)
}

func (q *queueState) clear() { q.messages, q.byID = nil, nil }

// visible returns the messages that can be received, ordered by the time since when they can be.
func (q *queueState) visible() []*message {
	var found []*message
	now := time.Now()
	for _, m := range q.alive() {
		if !now.Before(m.visible) {
			found = append(found, m)
		}
	}
	slices.SortStableFunc(found, func(a, b *message) int { return a.visible.Compare(b.visible) })
	return found
}

func (s *Service) routeMessages(r *storage.Request, q *queueState) *storage.Answer {
	id, single := strings.CutPrefix(r.Blob, "messages/")
	switch {
	case single && r.Method == http.MethodPut:
		return s.updateMessage(r, q, id)
	case single && r.Method == http.MethodDelete:
		return deleteMessage(r, q, id)
	case r.Blob != "messages":
	case r.Method == http.MethodPost:
		return s.putMessage(r, q)
	case r.Method == http.MethodDelete:
		q.clear()
		return storage.OK(http.StatusNoContent)
	case r.Method == http.MethodGet && r.Query.Get("peekonly") == "true":
		return peekMessages(r, q)
	case r.Method == http.MethodGet:
		return s.getMessages(r, q)
	}
	return storage.NotImplemented()
}

// seconds reads a query parameter. An empty one is the default.
func seconds(r *storage.Request, name string, none, least, most time.Duration) (time.Duration, *storage.Answer) {
	text := r.Query.Get(name)
	if text == "" {
		return none, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < int64(least/time.Second) || n > int64(most/time.Second) { // in seconds: as a Duration it could overflow
		return 0, storage.OutOfRange(name, text)
	}
	return time.Duration(n) * time.Second, nil
}

// textOf reads the text of a message from a request.
func textOf(r *storage.Request) (string, *storage.Answer) {
	var doc struct {
		XMLName     xml.Name `xml:"QueueMessage"`
		MessageText string
	}
	if err := xml.Unmarshal(r.Body, &doc); err != nil {
		return "", storage.InvalidXML()
	}
	if len(doc.MessageText) > maxMessage {
		return "", storage.TooLarge()
	}
	return doc.MessageText, nil
}

// putMessage adds a message (REST: "Put Message").
func (s *Service) putMessage(r *storage.Request, q *queueState) *storage.Answer {
	hidden, bad := seconds(r, "visibilitytimeout", 0, 0, week)
	if bad != nil {
		return bad
	}
	ttl, bad := seconds(r, "messagettl", week, -time.Second, 1<<62)
	if bad != nil {
		return bad
	}
	if ttl == 0 || ttl > 0 && hidden >= ttl {
		return storage.OutOfRange("messagettl", r.Query.Get("messagettl"))
	}
	text, bad := textOf(r)
	if bad != nil {
		return bad
	}
	now := time.Now().UTC()
	m := &message{id: s.messageID(), receipt: s.receipt(), text: text, inserted: now, visible: now.Add(hidden), expires: forever}
	if ttl > 0 {
		m.expires = now.Add(ttl)
	}
	q.add(m)
	a := messagesAnswer([]*message{m}, func(l *listedMessage) { l.DequeueCount, l.MessageText = nil, nil })
	a.Status = http.StatusCreated
	return a
}

func (s *Service) messageID() string {
	s.serial++
	return fmt.Sprintf("a27e57a2-0000-4000-8000-%012x", s.serial)
}

// receipt returns a new pop receipt. It is opaque, and has to be escaped in a URL.
func (s *Service) receipt() string {
	s.serial++
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "receipt~%d~?", s.serial))
}

// isReceipt reports whether a text has the form of a pop receipt.
func isReceipt(given string) bool {
	text, err := base64.StdEncoding.DecodeString(given)
	return err == nil && bytes.HasPrefix(text, []byte("receipt~"))
}

// getMessages returns messages and hides them (REST: "Get Messages"). All messages of one response get the same pop
// receipt, as from the service: a receipt identifies a message only together with the message's id.
func (s *Service) getMessages(r *storage.Request, q *queueState) *storage.Answer {
	n, bad := countOf(r)
	if bad != nil {
		return bad
	}
	hidden, bad := seconds(r, "visibilitytimeout", defaultVisible, time.Second, week)
	if bad != nil {
		return bad
	}
	found := q.visible()
	found = found[:min(n, len(found))]
	receipt, visible := s.receipt(), time.Now().UTC().Add(hidden)
	for _, m := range found {
		m.dequeued++
		m.receipt, m.visible = receipt, visible
	}
	return messagesAnswer(found, func(*listedMessage) {})
}

func peekMessages(r *storage.Request, q *queueState) *storage.Answer {
	n, bad := countOf(r)
	if bad != nil {
		return bad
	}
	found := q.visible()
	return messagesAnswer(found[:min(n, len(found))], func(l *listedMessage) { l.PopReceipt, l.TimeNextVisible = "", "" })
}

func countOf(r *storage.Request) (int, *storage.Answer) {
	text := r.Query.Get("numofmessages")
	if text == "" {
		return 1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 32 {
		return 0, storage.OutOfRange("numofmessages", text)
	}
	return n, nil
}

// find returns the message for which the receipt is the latest. A message that has been received since is not found
// under the old receipt (REST: "Delete Message", 404; "Update Message"). A receipt remains valid after its visibility
// timeout until another client receives the message.
func (q *queueState) find(r *storage.Request, id string) (*message, *storage.Answer) {
	q.alive()
	m, given := q.byID[id], r.Query.Get("popreceipt")
	if m != nil && m.receipt == given {
		return m, nil
	}
	if m != nil && given != "" && !isReceipt(given) {
		return nil, storage.InvalidQuery()
	}
	if given == "" {
		return nil, missingParameter()
	}
	return nil, storage.Fail(http.StatusNotFound, "MessageNotFound", "The specified message does not exist.")
}

func missingParameter() *storage.Answer {
	return storage.Fail(http.StatusBadRequest, "MissingRequiredQueryParameter",
		"A query parameter that's mandatory for this request is not specified.")
}

// updateMessage hides a message again, and changes its text if there is one in the request (REST: "Update Message").
func (s *Service) updateMessage(r *storage.Request, q *queueState, id string) *storage.Answer {
	if r.Query.Get("visibilitytimeout") == "" {
		return missingParameter()
	}
	hidden, bad := seconds(r, "visibilitytimeout", 0, 0, week)
	if bad != nil {
		return bad
	}
	text, given := "", len(r.Body) > 0
	if given {
		if text, bad = textOf(r); bad != nil {
			return bad
		}
	}
	m, bad := q.find(r, id)
	if bad != nil {
		return bad
	}
	until := time.Now().UTC().Add(hidden)
	if until.After(m.expires) {
		return storage.OutOfRange("visibilitytimeout", r.Query.Get("visibilitytimeout"))
	}
	if given {
		m.text = text
	}
	m.receipt, m.visible = s.receipt(), until
	return storage.OK(http.StatusNoContent).Set("x-ms-popreceipt", m.receipt).Set("x-ms-time-next-visible", storage.StampOf(m.visible))
}

func deleteMessage(r *storage.Request, q *queueState, id string) *storage.Answer {
	m, bad := q.find(r, id)
	if bad != nil {
		return bad
	}
	q.remove(m)
	return storage.OK(http.StatusNoContent)
}

type (
	messageList struct {
		XMLName  xml.Name        `xml:"QueueMessagesList"`
		Messages []listedMessage `xml:"QueueMessage"`
	}
	listedMessage struct {
		MessageID       string `xml:"MessageId"`
		InsertionTime   string
		ExpirationTime  string
		PopReceipt      string  `xml:",omitempty"`
		TimeNextVisible string  `xml:",omitempty"`
		DequeueCount    *int    `xml:",omitempty"`
		MessageText     *string `xml:",omitempty"`
	}
)

// messagesAnswer returns a response with messages, without what the operation does not show.
func messagesAnswer(messages []*message, hide func(*listedMessage)) *storage.Answer {
	var list messageList
	for _, m := range messages {
		one := listedMessage{m.id, storage.StampOf(m.inserted), storage.StampOf(m.expires), m.receipt, storage.StampOf(m.visible), &m.dequeued, &m.text}
		hide(&one)
		list.Messages = append(list.Messages, one)
	}
	return storage.XML(list)
}
