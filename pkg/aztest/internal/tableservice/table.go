// Package tableservice is the Table service of an account in memory: tables, entities, queries and entity group transactions.
//
// Route carries out one request, at once. Nothing here locks: package aztest calls a service with its lock held.
package tableservice

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/edm"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// Host is where the SDK's clients send requests to the Table service: nothing listens there.
const Host = "127.0.0.1:10002"

// Service is the Table service's part of the account.
type Service struct {
	storage.Service[*tableState]
	clock      time.Time // the last Timestamp given out
	batchStamp time.Time // the Timestamp of all writes of the current transaction; zero outside of one
	batches    int
}

// tableState is a table as the service keeps it. Entities are never changed in place, so that a transaction can be
// undone by restoring the old ones.
type tableState struct {
	storage.Resource
	account  *storage.Account
	entities map[entityKey]*entity
}

// New returns an empty Table service of an account.
func New(a *storage.Account) *Service {
	s := &Service{}
	s.Account, s.Make = a, func() *tableState { return &tableState{account: a, entities: map[entityKey]*entity{}} }
	return s
}

// stamp returns the Timestamp of the next write, from which the ETag is derived. No two versions of an entity have the
// same one; the entities that one transaction writes do.
func (s *Service) stamp() time.Time {
	if !s.batchStamp.IsZero() {
		return s.batchStamp
	}
	now := time.Now().UTC().Truncate(100)
	if !now.After(s.clock) {
		now = s.clock.Add(100)
	}
	s.clock = now
	return now
}

// tablePath is the parsed path of a request: Table, Table(), Table(PartitionKey='p',RowKey='r'), Tables('Table').
type tablePath struct {
	name           string
	keyed          bool // PartitionKey and RowKey are given
	partition, row string
}

var (
	keyedPath = regexp.MustCompile(`^(\w+)\(\s*PartitionKey\s*=\s*'((?:[^']|'')*)'\s*,\s*RowKey\s*=\s*'((?:[^']|'')*)'\s*\)$`)
	namedPath = regexp.MustCompile(`^Tables\('([^']*)'\)$`)
	plainPath = regexp.MustCompile(`^([^()/]+?)(?:\(\))?$`)
)

// parseTablePath parses an unescaped path below the account. In keys a doubled quote stands for one.
func parseTablePath(path string) (tablePath, bool) {
	unquote := func(s string) string { return strings.ReplaceAll(s, "''", "'") }
	if m := keyedPath.FindStringSubmatch(path); m != nil {
		return tablePath{name: m[1], keyed: true, partition: unquote(m[2]), row: unquote(m[3])}, true
	}
	if m := plainPath.FindStringSubmatch(path); m != nil {
		return tablePath{name: m[1]}, true
	}
	return tablePath{}, false
}

// Operation names a request to the Table service as the REST reference does, and its resource.
func Operation(method, path string, q url.Values, h http.Header) (op, resource string) {
	if path == "$batch" {
		return "Entity Group Transaction", ""
	}
	if path == "" {
		return verb(method) + "Table Service Properties", ""
	}
	if m := namedPath.FindStringSubmatch(path); m != nil {
		return map[string]string{http.MethodDelete: "Delete Table", http.MethodGet: "Query Tables"}[method], m[1]
	}
	at, ok := parseTablePath(path)
	resource = at.name
	if at.keyed {
		resource += "/" + at.partition + "/" + at.row
	}
	unconditional := h.Get("If-Match") == ""
	switch {
	case !ok:
		return method, path
	case q.Get("comp") == "acl":
		return verb(method) + "Table ACL", resource
	case at.name == "Tables" && method == http.MethodPost:
		return "Create Table", ""
	case at.name == "Tables":
		return "Query Tables", ""
	case method == http.MethodGet:
		return "Query Entities", resource
	case isMerge(method, h) && unconditional:
		return "Insert Or Merge Entity", resource
	case isMerge(method, h):
		return "Merge Entity", resource
	case method == http.MethodPost:
		return "Insert Entity", resource
	case method == http.MethodPut && unconditional:
		return "Insert Or Replace Entity", resource
	case method == http.MethodPut:
		return "Update Entity", resource
	}
	return "Delete Entity", resource
}

func verb(method string) string {
	if method == http.MethodPut {
		return "Set "
	}
	return "Get "
}

func isMerge(method string, h http.Header) bool {
	return method == http.MethodPatch || method == "MERGE" || method == http.MethodPost && h.Get("X-Http-Method") == "MERGE"
}

// Route carries out a request to the Table service, and acknowledges the preference of one that writes, whether or not it acts on it.
func (s *Service) Route(r *storage.Request) *storage.Answer {
	a := s.route(r)
	if r.Method == http.MethodGet || r.Method == http.MethodDelete || r.Container == "$batch" || a.Failed() && r.Method != http.MethodPost {
		return a
	}
	return a.Set("Preference-Applied", r.Header.Get("Prefer"))
}

func (s *Service) route(r *storage.Request) *storage.Answer {
	path := r.Container
	if r.Blob != "" {
		path += "/" + r.Blob
	}
	path = strings.TrimSuffix(path, "/")
	if len(r.Body) > maxBatch {
		return Fail(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "The request body is too large and exceeds the maximum permissible limit.")
	}
	switch {
	case path == "" && r.Query.Get("comp") != "properties":
		return Fail(http.StatusNotImplemented, "NotImplemented", "The in-memory service does not implement this operation.")
	case path == "":
		return s.Settings(r)
	case path == "$batch":
		return s.batch(r)
	}
	if m := namedPath.FindStringSubmatch(path); m != nil {
		return s.routeNamedTable(r, m[1])
	}
	at, ok := parseTablePath(path)
	switch {
	case !ok:
		return Fail(http.StatusBadRequest, "InvalidUri", "The requested URI does not represent any resource on the server.")
	case at.name == "Tables" && r.Method == http.MethodPost:
		return s.createTable(r)
	case at.name == "Tables":
		return s.queryTables(r)
	}
	t, bad := s.liveTable(at.name)
	switch {
	case bad != nil:
		return bad
	case r.Query.Get("comp") == "acl" && r.Method != http.MethodPut:
		return t.Show(r)
	case r.Query.Get("comp") == "acl":
		return cmp.Or(t.Set(r), storage.OK(http.StatusNoContent))
	case r.Method == http.MethodGet && !at.keyed:
		return s.queryEntities(r, t)
	case r.Method == http.MethodGet:
		return s.getEntity(r, t, at)
	}
	return s.writeEntity(r, t, at, func(*entity) {})
}

// liveTable returns a table that exists. While a table is being deleted, every operation on it is refused (REST:
// "Delete Table").
func (s *Service) liveTable(name string) (*tableState, *storage.Answer) {
	t := s.Find(name)
	switch {
	case t == nil:
		return nil, Fail(http.StatusNotFound, "TableNotFound", "The table specified does not exist.")
	case t.Gone():
		return nil, Fail(http.StatusConflict, "TableBeingDeleted", "The specified table is being deleted. Try operation later.")
	}
	return t, nil
}

var tableName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)

func (s *Service) createTable(r *storage.Request) *storage.Answer {
	var wanted struct{ TableName string }
	if err := json.Unmarshal(r.Body, &wanted); err != nil {
		return invalidInput("The request body is not a table.")
	}
	name := wanted.TableName
	switch {
	case len(name) < 3 || len(name) > 63:
		return Fail(http.StatusBadRequest, "OutOfRangeInput", "The specified resource name length is not within the permissible limits.")
	case !tableName.MatchString(name) || strings.EqualFold(name, "tables"):
		return Fail(http.StatusBadRequest, "InvalidResourceName", "The specified resource name contains invalid characters.")
	}
	if t := s.Find(name); t != nil {
		if _, bad := s.liveTable(name); bad != nil {
			return bad
		}
		return Fail(http.StatusConflict, "TableAlreadyExists", "The table specified already exists.")
	}
	s.Add(name, nil)
	if noContent(r) {
		return storage.OK(http.StatusNoContent).Set("DataServiceId", s.tableURL(name)).Set("Location", s.tableURL(name))
	}
	level := metadataOfRequest(r)
	a := jsonAnswer(http.StatusCreated, level, s.listedTable(name, level, "$metadata#Tables/@Element"))
	return a.Set("Location", s.tableURL(name))
}

func (s *Service) routeNamedTable(r *storage.Request, name string) *storage.Answer {
	t := s.Find(name)
	switch {
	case r.Method != http.MethodDelete && r.Method != http.MethodGet:
		return Fail(http.StatusMethodNotAllowed, "MethodNotAllowed", "The requested method is not allowed on the specified resource.")
	case t == nil, t.Gone(): // no longer listed, and deleted once only
		return Fail(http.StatusNotFound, "ResourceNotFound", "The specified resource does not exist.")
	case r.Method == http.MethodGet:
		level := metadataOfRequest(r)
		return jsonAnswer(http.StatusOK, level, s.listedTable(t.Name, level, "$metadata#Tables/@Element"))
	}
	t.Deleted = time.Now()
	t.entities = map[entityKey]*entity{}
	return storage.OK(http.StatusNoContent)
}

func (s *Service) queryTables(r *storage.Request) *storage.Answer {
	matches, err := edm.ParseFilter(r.Query.Get("$filter"))
	if err != nil {
		return invalidInput("The filter cannot be read: " + err.Error() + ".")
	}
	top, bad := topOf(r)
	if bad != nil {
		return bad
	}
	level := metadataOfRequest(r)
	page := []edm.Object{}
	a := storage.OK(http.StatusOK)
	for _, key := range s.Names("") {
		t := s.Find(key)
		if key < strings.ToLower(r.Query.Get("nexttablename")) || !matches(func(name string) (edm.Value, bool) {
			return edm.Value{Type: edm.String, Text: t.Name}, name == "TableName"
		}) {
			continue
		}
		if len(page) == top {
			a.Set("x-ms-continuation-NextTableName", t.Name)
			break
		}
		page = append(page, s.listedTable(t.Name, level, ""))
	}
	return s.listAnswer(a, level, "$metadata#Tables", page)
}

func (s *Service) listedTable(name string, level edm.Level, metadata string) edm.Object {
	var o edm.Object
	if level != edm.NoMetadata && metadata != "" {
		o.Add("odata.metadata", edm.Quote(s.Endpoint+"/"+metadata))
	}
	if level == edm.FullMetadata {
		o.Add("odata.type", edm.Quote(s.Name+".Tables"))
		o.Add("odata.id", edm.Quote(s.tableURL(name)))
		o.Add("odata.editLink", edm.Quote("Tables('"+name+"')"))
	}
	o.Add("TableName", edm.Quote(name))
	return o
}

func (s *Service) tableURL(name string) string { return s.Endpoint + "/Tables('" + name + "')" }

func noContent(r *storage.Request) bool { return r.Header.Get("Prefer") == "return-no-content" }

func invalidInput(m string) *storage.Answer {
	return Fail(http.StatusBadRequest, "InvalidInput", m)
}

// topOf reads $top: 0 to 1000.
func topOf(r *storage.Request) (int, *storage.Answer) {
	value := r.Query.Get("$top")
	if value == "" {
		return 1000, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > 1000 {
		return 0, invalidInput("The value of $top is not a number between 0 and 1000.")
	}
	return n, nil
}

// Fail returns an error response of the Table service, which has the code only in the body.
func Fail(status int, code, message string) *storage.Answer {
	a := storage.OK(status).Set("Content-Type", "application/json;odata=minimalmetadata;streaming=true;charset=utf-8")
	a.Code = code
	a.Body = fmt.Appendf(nil, `{"odata.error":{"code":%s,"message":{"lang":"en-US","value":%s}}}`, edm.Quote(code), edm.Quote(message))
	return a
}
