package queue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/table"
	"github.com/azconc/azconc/idempotent"
)

const sendLinesHelp = `The command can also send what follows from the message, in lines among the writes. azconc stores these messages in the
same transaction, sends them once the writes are made, and after a crash sends what is left, under the same ids:

  {"send": {"queue": "shipments", "body": {"order": 17}}}

The queue is one of --send-to. A body that is a string is sent as its text, any other as JSON. "id", "headers", "delay" and
"ttl" are those of azconc queue send; the id has a default that all copies share.
`

// outboxQueues reads the names of queues that a flag lists.
func outboxQueues(list string) (names []string, err error) {
	for name := range strings.SplitSeq(list, ",") {
		if name, err = parseQueue(name); err != nil {
			return nil, fmt.Errorf("--send-to: %w", err)
		}
		names = append(names, name)
	}
	return names, nil
}

// producers returns those of an outbox.
func producers(f *cli.Factory, queues []string, create bool) (map[string]*idempotent.Producer, error) {
	all := map[string]*idempotent.Producer{}
	for _, name := range queues {
		queue, err := f.Queue(name)
		if err != nil {
			return nil, err
		}
		if all[name], err = idempotent.NewProducer(queue, &idempotent.ProducerOptions{CreateQueue: create, Hooks: f.Monitor.Hooks()}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// outgoing is a message that a command sends.
type outgoing struct {
	queue   string
	message idempotent.Outgoing
}

const printedSource = "what the command printed"

// parsePrinted reads what a command has printed: writes, and messages to these queues.
func parsePrinted(out []byte, queues []string) (ops []table.Operation, sends []outgoing, err error) {
	var writes []byte
	d := json.NewDecoder(bytes.NewReader(out))
	for n := 1; ; n++ {
		var object json.RawMessage
		if err := d.Decode(&object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			writes = out // which says what is wrong
			break
		}
		var line struct {
			Send json.RawMessage `json:"send"`
		}
		if json.Unmarshal(object, &line) != nil || line.Send == nil {
			writes = append(append(writes, object...), '\n')
			continue
		}
		send, err := parseSend(object, queues)
		if err != nil {
			return nil, nil, &fail.FilterError{What: fmt.Sprintf("object %d of %s is not a message to send", n, printedSource), Err: err}
		}
		sends = append(sends, send)
	}
	if len(bytes.TrimSpace(writes)) > 0 { // otherwise only the marker is written
		ops, err = table.ParseOperations(printedSource, writes)
	}
	return ops, sends, err
}

func parseSend(object []byte, queues []string) (outgoing, error) {
	var line struct {
		Send struct {
			Queue   string            `json:"queue"`
			Body    json.RawMessage   `json:"body"`
			ID      string            `json:"id"`
			Headers map[string]string `json:"headers"`
			Delay   string            `json:"delay"`
			TTL     string            `json:"ttl"`
		} `json:"send"`
	}
	d := json.NewDecoder(bytes.NewReader(object))
	d.DisallowUnknownFields()
	if err := d.Decode(&line); err != nil {
		return outgoing{}, errors.New(fail.PlainJSON(err))
	}
	s := line.Send
	m := idempotent.Outgoing{ID: s.ID, Headers: s.Headers, Body: s.Body}
	var text string
	switch {
	case len(s.Body) == 0 || string(s.Body) == "null":
		return outgoing{}, errors.New("it has no body")
	case json.Unmarshal(s.Body, &text) == nil:
		m.Body = []byte(text)
	}
	if !slices.Contains(queues, s.Queue) {
		return outgoing{}, fmt.Errorf("its queue %q is none of --send-to", s.Queue)
	}
	for to, given := range map[*time.Duration]string{&m.Delay: s.Delay, &m.TTL: s.TTL} {
		if given != "" {
			var err error
			if *to, err = flags.ParseDuration(given); err != nil {
				return outgoing{}, err
			}
		}
	}
	return outgoing{s.Queue, m}, nil
}
