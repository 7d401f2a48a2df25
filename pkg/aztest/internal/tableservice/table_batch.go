package tableservice

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// batch applies an entity group transaction (REST: "Performing entity group transactions"): all of its operations, or
// none. A failure is a response inside the response, whose own status is 202 in either case. The message begins with
// the index of the operation that failed.
func (s *Service) batch(r *storage.Request) *storage.Answer {
	operations, err := parseBatch(r)
	if err != nil {
		return invalidInput("The batch cannot be read: " + err.Error() + ".")
	}
	s.batches++
	s.batchStamp = s.stamp()
	defer func() { s.batchStamp = time.Time{} }()
	undo := []func(){}
	answers, failed := s.runBatch(operations, r.Permit, func(t *tableState, key entityKey, old *entity) {
		undo = append(undo, func() {
			if old == nil {
				delete(t.entities, key)
			} else {
				t.entities[key] = old
			}
		})
	})
	if failed {
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
		answers = answers[len(answers)-1:]
	}
	return s.batchAnswer(answers)
}

// runBatch stops at the first operation that fails, whose response is the last one.
func (s *Service) runBatch(operations []*storage.Request, permit func(*storage.Request) *storage.Answer, changing func(*tableState, entityKey, *entity)) (answers []*storage.Answer, failed bool) {
	seen := map[entityKey]bool{}
	var group *tablePath
	for i, op := range operations {
		at, a := s.admit(i, op, group, seen)
		if a == nil && permit != nil {
			a = permit(op)
		}
		if a == nil {
			t, bad := s.liveTable(at.name)
			if a = bad; a == nil {
				key := entityKey{at.partition, at.row}
				op.Header.Del("X-Http-Method")
				a = s.writeEntity(op, t, tablePath{name: at.name, keyed: op.Method != http.MethodPost, partition: at.partition, row: at.row},
					func(old *entity) { changing(t, key, old) })
			}
		}
		answers = append(answers, a)
		if a.Failed() {
			a.Code = "" // inside the response, not its own
			a.Body = bytes.Replace(a.Body, []byte(`"value":"`), fmt.Appendf(nil, `"value":"%d:`, i), 1)
			return answers, true
		}
		group = &at
	}
	return answers, false
}

// admit checks the rules for the operations of a transaction: one partition of one table, each entity once, and at most
// a hundred.
func (s *Service) admit(i int, op *storage.Request, group *tablePath, seen map[entityKey]bool) (tablePath, *storage.Answer) {
	at, ok := parseTablePath(op.Container)
	if !ok || at.name == "Tables" {
		return at, Fail(http.StatusBadRequest, "InvalidUri", "The requested URI does not represent any resource on the server.")
	}
	if op.Method == http.MethodPost && isMerge(op.Method, op.Header) {
		op.Method = http.MethodPatch
	}
	if op.Method == http.MethodPost {
		keys, _, bad := parseEntity(op.Body)
		if bad != nil {
			return at, bad
		}
		at.partition, at.row = keys["PartitionKey"], keys["RowKey"]
	}
	key := entityKey{at.partition, at.row}
	switch {
	case i >= maxBatchOps:
		return at, invalidInput("The batch request operation exceeds the maximum 100 changes per change set.")
	case op.Method == http.MethodGet:
		return at, Fail(http.StatusNotImplemented, "NotImplemented", "The in-memory service does not query in a batch.")
	case group != nil && !strings.EqualFold(group.name, at.name):
		return at, invalidInput("The batch request contains changes of more than one table.")
	case group != nil && group.partition != at.partition:
		return at, Fail(http.StatusBadRequest, "CommandsInBatchActOnDifferentPartitions", "All commands in a batch must operate on same entity group.")
	case seen[key]:
		return at, Fail(http.StatusBadRequest, "InvalidDuplicateRow", "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.")
	}
	seen[key] = true
	return at, nil
}

// parseBatch parses the operations of the one change set in the body.
func parseBatch(r *storage.Request) ([]*storage.Request, error) {
	outer, err := partsOf(r.Header.Get("Content-Type"), r.Body)
	if err != nil {
		return nil, err
	}
	var operations []*storage.Request
	for _, set := range outer {
		inner, err := partsOf(set.header.Get("Content-Type"), set.body)
		if err != nil {
			return nil, err
		}
		for _, p := range inner {
			op, err := parseOperation(p.body)
			if err != nil {
				return nil, err
			}
			operations = append(operations, op)
		}
	}
	if len(outer) == 0 {
		return nil, io.ErrUnexpectedEOF // a change set may be empty, but must not be missing
	}
	return operations, nil
}

type part struct {
	header textproto.MIMEHeader
	body   []byte
}

func partsOf(contentType string, body []byte) ([]part, error) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "multipart/mixed" {
		return nil, fmt.Errorf("%q is not multipart/mixed", contentType)
	}
	reader := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	var parts []part
	for {
		p, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(p)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part{p.Header, data})
	}
}

// parseOperation parses a request inside the request. It has no Content-Length: the body is the rest.
func parseOperation(raw []byte) (*storage.Request, error) {
	reader := bufio.NewReader(bytes.NewReader(raw))
	text := textproto.NewReader(reader)
	line, err := text.ReadLine()
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return nil, fmt.Errorf("%q is not a request line", line)
	}
	header, err := text.ReadMIMEHeader()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	at, err := url.Parse(fields[1])
	if err != nil {
		return nil, err
	}
	op := &storage.Request{Method: fields[0], Query: at.Query(), Header: http.Header(header)}
	op.Account, op.Container, _ = strings.Cut(strings.TrimPrefix(at.Path, "/"), "/")
	op.Body, err = io.ReadAll(reader)
	return op, err
}

// batchAnswer combines the responses into one, each part with its status, its ETag and its error.
func (s *Service) batchAnswer(answers []*storage.Answer) *storage.Answer {
	id := fmt.Sprintf("%08x-0000-4000-8000-%012x", s.Etags, s.batches)
	var changes, whole bytes.Buffer
	for _, a := range answers {
		fmt.Fprintf(&changes, "--changesetresponse_%s\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n", id)
		fmt.Fprintf(&changes, "HTTP/1.1 %d %s\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\nDataServiceVersion: 3.0;\r\n", a.Status, http.StatusText(a.Status))
		for _, name := range []string{"Content-Type", "Preference-Applied", "Location", "DataServiceId"} {
			if value := a.Header.Get(name); value != "" {
				fmt.Fprintf(&changes, "%s: %s\r\n", name, value)
			}
		}
		if etag := a.Header.Get("ETag"); etag != "" {
			fmt.Fprintf(&changes, "ETag: %s\r\n", etag)
		}
		fmt.Fprintf(&changes, "\r\n%s\r\n", a.Body)
	}
	fmt.Fprintf(&changes, "--changesetresponse_%s--\r\n", id)
	fmt.Fprintf(&whole, "--batchresponse_%s\r\nContent-Type: multipart/mixed; boundary=changesetresponse_%s\r\n\r\n%s--batchresponse_%s--\r\n", id, id, changes.Bytes(), id)
	a := storage.OK(http.StatusAccepted).Set("Content-Type", "multipart/mixed; boundary=batchresponse_"+id)
	a.Body = whole.Bytes()
	return a
}
