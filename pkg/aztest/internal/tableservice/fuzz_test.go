package tableservice

import (
	"bytes"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/edm"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

const accountName = "devstoreaccount1"

// FuzzBatch carries out any body as a transaction: it changes the table wholly or not at all.
func FuzzBatch(f *testing.F) {
	one := func(lines ...string) string { return strings.Join(lines, "\r\n") }
	f.Add("multipart/mixed; boundary=b", []byte(one("--b", "Content-Type: multipart/mixed; boundary=c", "", "--c", "Content-Type: application/http", "",
		"POST http://h/devstoreaccount1/box HTTP/1.1", "Content-Type: application/json", "", `{"PartitionKey":"p","RowKey":"s"}`, "--c", "Content-Type: application/http", "",
		"DELETE http://h/devstoreaccount1/box(PartitionKey='p',RowKey='r') HTTP/1.1", "If-Match: *", "", "", "--c--", "--b--", "")))
	f.Add("multipart/mixed; boundary=b", []byte("--b\nContent-Type: multipart/mixed; boundary=c\n\n--c--\n--b--"))
	f.Add("text/plain", []byte("x"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		s := inhabited(t)
		before := rows(s)
		a := s.Route(&storage.Request{Method: http.MethodPost, Host: Host, Account: accountName, Container: "$batch", Query: url.Values{},
			Header: http.Header{"Content-Type": {contentType}}, Body: body})
		if failed := a.Failed() || bytes.Contains(a.Body, []byte(`"odata.error"`)); failed && !reflect.DeepEqual(rows(s), before) {
			t.Errorf("a transaction that failed has changed %v to %v", before, rows(s))
		}
		if !s.batchStamp.IsZero() {
			t.Error("the transaction goes on")
		}
	})
}

// rows are the versions in the table box.
func rows(s *Service) map[entityKey]string {
	out := map[entityKey]string{}
	for key, e := range s.Find("box").entities {
		out[key] = e.etag()
	}
	return out
}

// inhabited is an account with an entity in the table box.
func inhabited(t *testing.T) *Service {
	s := New(&storage.Account{Name: accountName})
	s.Ensure("box")
	if a := s.Route(&storage.Request{Method: http.MethodPost, Host: Host, Account: accountName, Container: "box", Query: url.Values{}, Header: http.Header{},
		Body: []byte(`{"PartitionKey":"p","RowKey":"r"}`)}); a.Failed() {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return s
}

// FuzzEntity reads any body as an entity. What is read is written so that it is read again the same.
func FuzzEntity(f *testing.F) {
	for _, seed := range []string{`{"PartitionKey":"p","RowKey":"r","n":1}`, `{"l":"5","l@odata.type":"Edm.Int64","d":1.0,"b":true,"none":null}`,
		`{"t":"2020-01-01T00:00:00.0000001Z","t@odata.type":"Edm.DateTime","bin":"AAE=","bin@odata.type":"Edm.Binary","ü":"x"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		key, properties, bad := parseEntity(body)
		if bad != nil {
			return
		}
		e := &entity{entityKey: entityKey{key["PartitionKey"], key["RowKey"]}, timestamp: time.Unix(0, 0).UTC(), properties: properties}
		written, err := e.object(&tableState{Resource: storage.Resource{Name: "box"}, account: &storage.Account{Name: "account"}}, edm.FullMetadata, "", nil).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		_, again, bad := parseEntity(written)
		if bad != nil || !reflect.DeepEqual(again, properties) {
			t.Errorf("%s is written as %s, which is read as %v", body, written, again)
		}
	})
}

// FuzzTablePath reads any path. A path with keys is read again the same.
func FuzzTablePath(f *testing.F) {
	for _, seed := range []string{"box", "box()", "box(PartitionKey='p',RowKey='it''s')", "Tables('box')"} {
		f.Add(seed)
	}
	quoted := func(key string) string { return "'" + strings.ReplaceAll(key, "'", "''") + "'" }
	f.Fuzz(func(t *testing.T, path string) {
		at, ok := parseTablePath(path)
		if !ok || !at.keyed {
			return
		}
		again, ok := parseTablePath(at.name + "(PartitionKey=" + quoted(at.partition) + ",RowKey=" + quoted(at.row) + ")")
		if !ok || again != at {
			t.Errorf("%q is %+v, written again %+v", path, at, again)
		}
	})
}
