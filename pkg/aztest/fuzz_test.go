package aztest

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/azconc/azconc/pkg/aztest/internal/blobservice"
	"github.com/azconc/azconc/pkg/aztest/internal/fileservice"
	"github.com/azconc/azconc/pkg/aztest/internal/queueservice"
	"github.com/azconc/azconc/pkg/aztest/internal/tableservice"
)

// fuzzed are the hosts of the four services.
var fuzzed = []string{blobservice.Host, queueservice.Host, tableservice.Host, fileservice.Host}

// inhabited is an account with one of everything in it.
func inhabited() *Service {
	s := New(nil)
	s.BlockBlob("box", "b")
	s.Queue("box")
	s.Table("box")
	s.Share("box")
	for host, requests := range map[string][]string{
		blobservice.Host:  {"PUT /box/b X-Ms-Blob-Type=BlockBlob", "PUT /box/p X-Ms-Blob-Type=PageBlob&X-Ms-Blob-Content-Length=1024", "PUT /box/a X-Ms-Blob-Type=AppendBlob"},
		queueservice.Host: {"POST /box/messages x"},
		fileservice.Host:  {"PUT /box/f X-Ms-Type=file&X-Ms-Content-Length=16"},
		tableservice.Host: {"POST /box x"},
	} {
		for _, line := range requests {
			fields := strings.Fields(line)
			header, _ := url.ParseQuery(fields[2])
			body := map[string]string{queueservice.Host: "<QueueMessage><MessageText>m</MessageText></QueueMessage>", tableservice.Host: `{"PartitionKey":"p","RowKey":"r"}`}[host]
			r, err := http.NewRequest(fields[0], "http://"+host+"/"+Account+fields[1], strings.NewReader(body))
			if err != nil {
				panic(err)
			}
			r.Header = http.Header(header)
			r.Header.Set("Authorization", "SharedKey x")
			if a, err := s.Do(r); err != nil || a.StatusCode >= 300 {
				panic(fmt.Sprintf("%s: %v, %v", line, a, err))
			}
		}
	}
	return s
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
		hr, err := http.NewRequest(method, "http://"+fuzzed[int(host)%len(fuzzed)]+"/"+Account, bytes.NewReader(body))
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
