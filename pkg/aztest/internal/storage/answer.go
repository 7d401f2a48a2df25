package storage

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Stamped adds the headers that every response of the service has, even an error.
func (a *Answer) Stamped(id string, request http.Header, date time.Time) *Answer {
	return a.Set("x-ms-request-id", id).Set("x-ms-version", request.Get("x-ms-version")).
		Set("x-ms-client-request-id", request.Get("x-ms-client-request-id")).
		Set("Date", date.UTC().Format(http.TimeFormat)).Set("Server", "aztest")
}

// Now returns the time of the service's clock, in whole seconds.
func Now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// Answer is the service's response to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	Size   int64  // Content-Length if it is not the body's: for HEAD
	Code   string // the error code if it is only in the body, for the log
}

// OK returns a success without a body.
func OK(status int) *Answer { return &Answer{Status: status, Header: http.Header{}, Size: -1} }

// Fail returns an error response, with the code in the header, for HEAD, and in the body.
func Fail(status int, code, message string) *Answer {
	a := OK(status)
	a.Header.Set("x-ms-error-code", code)
	if status == http.StatusNotModified {
		return a
	}
	a.Header.Set("Content-Type", "application/xml")
	a.Body = fmt.Appendf(nil, "\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>%s</Code><Message>%s</Message></Error>",
		code, plain.Replace(message))
	return a
}

// FailInDetail is Fail with the detail that the service gives of some failed authentications, in the body only.
func FailInDetail(status int, code, message, detail string) *Answer {
	a := Fail(status, code, message)
	element := "</Message><AuthenticationErrorDetail>" + plain.Replace(detail) + "</AuthenticationErrorDetail>"
	a.Body = bytes.Replace(a.Body, []byte("</Message>"), []byte(element), 1)
	return a
}

// plain escapes a text for XML, with its quotes and line breaks as they are.
var plain = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Set sets a header, unless the value is empty.
func (a *Answer) Set(name, value string) *Answer {
	if value != "" {
		a.Header.Set(name, value)
	}
	return a
}

// Version adds the headers of a version.
func (a *Answer) Version(v *Versioned) *Answer {
	return a.Set("ETag", v.ETag).Set("Last-Modified", v.LastModified.Format(http.TimeFormat))
}

// Describing adds metadata.
func (a *Answer) Describing(metadata map[string]string) *Answer {
	for name, value := range metadata {
		a.Header.Set("x-ms-meta-"+name, value) // also if it is empty
	}
	return a
}

// Failed reports whether the response is no success.
func (a *Answer) Failed() bool { return a.Status >= 300 }

// CodedBody is a body with its error code, for the log: the Table service puts the code nowhere else.
type CodedBody struct {
	io.Reader
	Code string
}

func (CodedBody) Close() error { return nil }

// Response returns the response as a transport returns it.
func (a *Answer) Response(r *http.Request) *http.Response {
	size := a.Size
	if size < 0 {
		size = int64(len(a.Body))
	}
	body := a.Body
	if r.Method == http.MethodHead {
		body = nil
	}
	a.Header.Set("Content-Length", strconv.FormatInt(size, 10))
	return &http.Response{
		StatusCode: a.Status, Status: fmt.Sprintf("%d %s", a.Status, http.StatusText(a.Status)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.Header, Body: CodedBody{bytes.NewReader(body), a.Code}, ContentLength: size, Request: r,
	}
}

// SnapshotTime is the format of the time that names a snapshot.
const SnapshotTime = "2006-01-02T15:04:05.0000000Z"

// stored returns a document that was set, or an empty element if none was.
func stored(document []byte, element string) *Answer {
	a := OK(http.StatusOK).Set("Content-Type", "application/xml")
	if a.Body = document; len(a.Body) == 0 {
		a.Body = []byte(xml.Header + "<" + element + "/>")
	}
	return a
}

// XML returns a document, which begins as the service's do.
func XML(v any) *Answer {
	body, err := xml.Marshal(v)
	if err != nil {
		panic(err) // our own types
	}
	return stored(append([]byte("\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"), body...), "")
}

// NotImplemented is the response to an operation that only the real service has.
func NotImplemented() *Answer {
	return Fail(http.StatusNotImplemented, "NotImplemented", "The in-memory service does not implement this operation.")
}

// InvalidQuery is the response to a malformed query parameter.
func InvalidQuery() *Answer {
	return Fail(http.StatusBadRequest, "InvalidQueryParameterValue", "Value for one of the query parameters specified in the request URI is invalid.")
}

// InvalidXML is the response to a body that is not the XML of the operation.
func InvalidXML() *Answer {
	return Fail(http.StatusBadRequest, "InvalidXmlDocument", "XML specified is not syntactically valid.")
}

// TooLarge is the response to a body beyond the limit of the operation.
func TooLarge() *Answer {
	return Fail(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge",
		"The request body is too large and exceeds the maximum permissible limit.")
}

// StampOf formats a time as headers and lists show it.
func StampOf(t time.Time) string { return t.UTC().Format(http.TimeFormat) }
