package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
)

// shown are the elements of XML responses whose values are compared. An element with other elements in it is not shown.
var shown = map[string]bool{
	"MessageId": true, "PopReceipt": true, "DequeueCount": true, "Name": true, "Snapshot": true, "Etag": true, "LeaseStatus": true,
	"LeaseState": true, "LeaseDuration": true, "BlobType": true, "Start": true, "End": true, "Size": true, "Content-Length": true,
	"CopyId": true, "CopyStatus": true, "NextMarker": true, "Id": true, "Quota": true, "AccessTier": true, "PublicAccess": true,
}

// Mapped are the elements and headers whose values each account chooses: they are mapped, not compared.
var Mapped = map[string]bool{
	"MessageId": true, "PopReceipt": true, "Snapshot": true, "Etag": true, "CopyId": true, "NextMarker": true,
	"etag": true, "x-ms-lease-id": true, "x-ms-snapshot": true, "x-ms-copy-id": true, "x-ms-popreceipt": true,
	"x-ms-continuation-nextpartitionkey": true, "x-ms-continuation-nextrowkey": true, "x-ms-continuation-nexttablename": true,
	"x-ms-file-permission-key": true,
}

// Shape reduces the body of a successful response to "name=value" lines, in order. It parses XML lists, JSON objects of
// the Table service, and the responses to its transactions. Other content has no shape.
func Shape(contentType string, body []byte) []string {
	kind, params, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
		return nil
	case kind == "application/xml":
		return xmlShape(body)
	case kind == "application/json":
		return jsonShape(body)
	case kind == "multipart/mixed":
		return batchShape(params["boundary"], body)
	}
	return nil
}

func xmlShape(body []byte) (shape []string) {
	d := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte("\ufeff"))))
	name, text := "", strings.Builder{}
	for {
		t, err := d.Token()
		if err != nil {
			return shape
		}
		switch t := t.(type) {
		case xml.StartElement:
			name = t.Name.Local
			text.Reset()
		case xml.CharData:
			text.Write(t)
		case xml.EndElement:
			value := strings.TrimSpace(text.String())
			if name == t.Name.Local && shown[name] && value != "" {
				shape = append(shape, name+"="+value)
			}
			name = ""
		}
	}
}

func jsonShape(body []byte) []string {
	var whole map[string]json.RawMessage
	if json.Unmarshal(body, &whole) != nil {
		return nil
	}
	var list []map[string]json.RawMessage
	if json.Unmarshal(whole["value"], &list) != nil {
		return objectShape(whole)
	}
	var shape []string
	for _, one := range list {
		shape = append(shape, objectShape(one)...)
	}
	return shape
}

// objectShape returns the keys and the ETag of an entity or the name of a table, and the names of all members.
func objectShape(o map[string]json.RawMessage) []string {
	var shape []string
	for _, name := range []string{"TableName", "PartitionKey", "RowKey", "odata.etag"} {
		var value string
		if json.Unmarshal(o[name], &value) == nil {
			if name == "odata.etag" {
				name = "Etag"
			}
			shape = append(shape, name+"="+value)
		}
	}
	return append(shape, "members="+strings.Join(slices.Sorted(maps.Keys(o)), ","))
}

// batchShape returns the status, the ETag and the code of each response in a transaction's response.
func batchShape(boundary string, body []byte) (shape []string) {
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		p, err := parts.NextRawPart()
		if err != nil {
			return shape
		}
		data, err := io.ReadAll(p)
		if err != nil {
			return shape
		}
		if kind, params, err := mime.ParseMediaType(p.Header.Get("Content-Type")); err == nil && kind == "multipart/mixed" {
			shape = append(shape, batchShape(params["boundary"], data)...)
			continue
		}
		r, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(data)), nil)
		if err != nil {
			return append(shape, "unreadable="+err.Error())
		}
		inner, _ := io.ReadAll(r.Body)
		r.Body.Close()
		shape = append(shape, "status="+r.Status[:3])
		if etag := r.Header.Get("ETag"); etag != "" {
			shape = append(shape, "Etag="+etag)
		}
		if code := CodeIn(inner); code != "" {
			shape = append(shape, "code="+code)
		}
	}
}

// CodeIn returns the error code in a body: XML, or JSON as the Table service writes it.
func CodeIn(body []byte) string {
	var x struct{ Code string }
	if xml.Unmarshal(bytes.TrimPrefix(body, []byte("\ufeff")), &x) == nil {
		return x.Code
	}
	var j struct {
		Error struct {
			Code string `json:"code"`
		} `json:"odata.error"`
	}
	if json.Unmarshal(body, &j) == nil {
		return j.Error.Code
	}
	return ""
}
