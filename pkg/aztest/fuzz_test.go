package aztest

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/edm"
)

// hosts are those of the four services.
var hosts = []string{blobHost, queueHost, tableHost, fileHost}

// inhabited is an account with one of everything in it.
func inhabited() *Service {
	s := New(nil)
	s.BlockBlob("box", "b")
	s.Queue("box")
	s.Table("box")
	s.Share("box")
	for host, requests := range map[string][]string{
		blobHost:  {"PUT /box/b X-Ms-Blob-Type=BlockBlob", "PUT /box/p X-Ms-Blob-Type=PageBlob&X-Ms-Blob-Content-Length=1024", "PUT /box/a X-Ms-Blob-Type=AppendBlob"},
		queueHost: {"POST /box/messages x"},
		fileHost:  {"PUT /box/f X-Ms-Type=file&X-Ms-Content-Length=16"},
		tableHost: {"POST /box x"},
	} {
		for _, line := range requests {
			fields := strings.Fields(line)
			header, _ := url.ParseQuery(fields[2])
			body := map[string]string{queueHost: "<QueueMessage><MessageText>m</MessageText></QueueMessage>", tableHost: `{"PartitionKey":"p","RowKey":"r"}`}[host]
			if a := s.route(&request{method: fields[0], host: host, account: Account, container: "box", blob: strings.TrimPrefix(strings.TrimPrefix(fields[1], "/box"), "/"),
				query: url.Values{}, header: authorized(http.Header(header)), body: []byte(body)}); a.failed() {
				panic(fmt.Sprintf("%s: %d %s", line, a.status, a.body))
			}
		}
	}
	return s
}

func authorized(h http.Header) http.Header {
	h.Set("Authorization", "SharedKey x")
	return h
}

// FuzzRequest sends any request to an account with something in it. The service must answer: without a panic, with a code
// for every error, and with well-formed XML wherever it says so.
func FuzzRequest(f *testing.F) {
	for _, seed := range []struct {
		host                        byte
		method, path, query, header string
		body                        string
	}{
		{0, "GET", "box/b", "", "Range=bytes=0-3", ""},
		{0, "PUT", "box/b", "comp=lease", "X-Ms-Lease-Action=acquire&X-Ms-Lease-Duration=15", ""},
		{0, "PUT", "box/b", "comp=blocklist", "", "<BlockList><Latest>MQ==</Latest></BlockList>"},
		{0, "PUT", "box/b", "comp=tags", "", "<Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags>"},
		{0, "PUT", "box/p", "comp=page", "X-Ms-Page-Write=update&X-Ms-Range=bytes=0-511", strings.Repeat("x", 512)},
		{0, "PUT", "box/a", "comp=appendblock", "X-Ms-Blob-Condition-Appendpos=0", "x"},
		{0, "PUT", "box/c", "", "X-Ms-Copy-Source=http://127.0.0.1:10000/devstoreaccount1/box/b", ""},
		{0, "GET", "box", "restype=container&comp=list&include=metadata,snapshots,tags,copy,uncommittedblobs&maxresults=1", "", ""},
		{1, "GET", "box/messages", "numofmessages=32&visibilitytimeout=1", "", ""},
		{1, "POST", "box/messages", "messagettl=-1", "", "<QueueMessage><MessageText>x</MessageText></QueueMessage>"},
		{2, "GET", "box()", "$filter=PartitionKey eq 'p'&$top=1&$select=RowKey", "", ""},
		{2, "PUT", "box(PartitionKey='p',RowKey='r')", "", "If-Match=*", `{"n":1,"n@odata.type":"Edm.Int32"}`},
		{2, "POST", "$batch", "", "Content-Type=multipart/mixed; boundary=batch_1", "--batch_1--"},
		{3, "PUT", "box/f", "comp=range", "X-Ms-Write=update&X-Ms-Range=bytes=0-0", "x"},
		{3, "GET", "box", "restype=directory&comp=list&maxresults=1", "", ""},
	} {
		f.Add(seed.host, seed.method, seed.path, seed.query, seed.header, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, host byte, method, path, query, header string, body []byte) {
		hr, err := http.NewRequest(method, "http://"+hosts[int(host)%len(hosts)]+"/"+Account, bytes.NewReader(body))
		headers, bad := url.ParseQuery(header)
		if err != nil || bad != nil {
			return
		}
		hr.URL.Path += "/" + path
		hr.URL.RawQuery = query
		for name, values := range headers {
			hr.Header[name] = values
		}
		hr.Header.Set("Authorization", "SharedKey x")
		if size, _ := number(&request{header: canonical(hr.Header)}, "X-Ms-Content-Length"); size > 1<<20 {
			return // a file is held in memory
		}
		a, err := inhabited().Do(hr)
		if err != nil {
			return
		}
		said, _ := io.ReadAll(a.Body)
		kind := a.Header.Get("Content-Type")
		switch {
		case a.StatusCode < 200 || a.StatusCode > 599 || a.StatusCode >= 500 && a.StatusCode != http.StatusNotImplemented:
			t.Errorf("answered %d %s", a.StatusCode, said)
		case a.StatusCode >= 400 && a.Header.Get("x-ms-error-code") == "" && !bytes.Contains(said, []byte(`"code":"`)):
			t.Errorf("answered %d without a code: %s", a.StatusCode, said)
		case strings.HasPrefix(kind, "application/xml") && len(said) > 0 && xmlBody(said) != nil && !kept(query, body, said):
			t.Errorf("answered %s, which is not XML: %v", said, xmlBody(said))
		}
	})
}

// kept tells whether an answer is a text that the request itself had stored, or that it asked for as the content.
func kept(query string, body, said []byte) bool {
	return strings.Contains(query, "comp=acl") || strings.Contains(query, "comp=properties") || bytes.Equal(body, said)
}

func xmlBody(body []byte) error {
	d := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte("\ufeff"))))
	for {
		if _, err := d.Token(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// FuzzBatch carries out any body as a transaction: it changes the table wholly or not at all.
func FuzzBatch(f *testing.F) {
	one := func(lines ...string) string { return strings.Join(lines, "\r\n") }
	f.Add("multipart/mixed; boundary=b", []byte(one("--b", "Content-Type: multipart/mixed; boundary=c", "", "--c", "Content-Type: application/http", "",
		"POST http://h/devstoreaccount1/box HTTP/1.1", "Content-Type: application/json", "", `{"PartitionKey":"p","RowKey":"s"}`, "--c", "Content-Type: application/http", "",
		"DELETE http://h/devstoreaccount1/box(PartitionKey='p',RowKey='r') HTTP/1.1", "If-Match: *", "", "", "--c--", "--b--", "")))
	f.Add("multipart/mixed; boundary=b", []byte("--b\nContent-Type: multipart/mixed; boundary=c\n\n--c--\n--b--"))
	f.Add("text/plain", []byte("x"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		s := inhabited()
		before := rows(s)
		a := s.routeTable(&request{method: http.MethodPost, host: tableHost, account: Account, container: "$batch", query: url.Values{},
			header: authorized(http.Header{"Content-Type": {contentType}}), body: body})
		if failed := a.failed() || bytes.Contains(a.body, []byte(`"odata.error"`)); failed && !reflect.DeepEqual(rows(s), before) {
			t.Errorf("a transaction that failed has changed %v to %v", before, rows(s))
		}
		if !s.tables.batchStamp.IsZero() {
			t.Error("the transaction goes on")
		}
	})
}

// rows are the versions in the table box.
func rows(s *Service) map[entityKey]string {
	out := map[entityKey]string{}
	for key, e := range s.table("box").entities {
		out[key] = e.etag()
	}
	return out
}

// FuzzTagCondition reads any text as a condition on tags.
func FuzzTagCondition(f *testing.F) {
	for _, seed := range []string{`"a" = 'b'`, `"a" > 'b' AND ("c" <> 'd' OR "e" <= 'f')`, `"it""s" = 'it''s'`, "\"\">''\r", "\"a\"='b'\u00a0"} {
		f.Add(seed)
	}
	tags := []map[string]string{nil, {"a": "b"}, {"c": "x", "e": ""}}
	f.Fuzz(func(t *testing.T, text string) {
		matches, err := parseTags(text)
		if err != nil {
			return
		}
		same, err := parseTags("(" + text + ")")
		if err != nil {
			t.Fatalf("%q is a condition, in parentheses it is none: %v", text, err)
		}
		for _, one := range tags {
			if matches(one) != same(one) {
				t.Errorf("%q says %t about %v, in parentheses %t", text, matches(one), one, same(one))
			}
		}
	})
}

// FuzzRange reads any range of a blob: it is the bytes that it names, or refused; what is no range is ignored.
func FuzzRange(f *testing.F) {
	for _, seed := range []string{"bytes=0-3", "bytes=2-", "bytes=9-10", "bytes=3-2", "bytes=-1", "bytes=0-99999999999999999999"} {
		f.Add(seed)
	}
	content := []byte("0123456789")
	f.Fuzz(func(t *testing.T, header string) {
		a := getBlob(&request{header: http.Header{"Range": {header}}}, &blobState{kind: "BlockBlob", content: content})
		var first, last, size int
		switch {
		case a.status == http.StatusOK && bytes.Equal(a.body, content):
			if _, _, err := parseRange(header); err == nil {
				t.Errorf("%q is ignored", header)
			}
		case a.status == http.StatusRequestedRangeNotSatisfiable:
		case a.status == http.StatusPartialContent:
			n, err := fmt.Sscanf(a.header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size)
			if err != nil || n != 3 || size != len(content) || !bytes.Equal(a.body, content[first:last+1]) {
				t.Errorf("%q: %s with %q", header, a.header.Get("Content-Range"), a.body)
			}
		default:
			t.Errorf("%q: %d with %q", header, a.status, a.body)
		}
	})
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
		written, err := e.object(&tableState{name: "box"}, edm.FullMetadata, "", nil).MarshalJSON()
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
