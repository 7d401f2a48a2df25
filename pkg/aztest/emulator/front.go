package emulator

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// maxBody is the largest body of a request. The service takes 5,000 MiB, which would have to fit into memory.
const maxBody = 1 << 30

// front passes a request on to the account in its path.
type front struct {
	handlers map[string]http.Handler
	memory   *memory
}

// stall is how long a body may bring nothing before its connection is dropped.
var stall = 10 * time.Second

// flowing is a body that has to go on.
type flowing struct {
	io.ReadCloser
	connection *http.ResponseController
}

func (f flowing) Read(p []byte) (int, error) {
	_ = f.connection.SetReadDeadline(time.Now().Add(stall))
	n, err := f.ReadCloser.Read(p)
	if err == io.EOF {
		_ = f.connection.SetReadDeadline(time.Time{}) // the request may take longer than its body
	}
	return n, err
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if r.Host != "" && len(r.URL.Host) > 0 { // an absolute URL, as a client sends it to a proxy
		r.URL = &url.URL{Path: path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	name = strings.TrimSuffix(name, "-secondary")
	handler := f.handlers[name]
	switch {
	case handler == nil:
		fail(w, http.StatusBadRequest, "InvalidUri", "The URL does not begin with the name of an account of this emulator: /"+aztest.Account+" is one by default.")
	case r.ContentLength > maxBody:
		fail(w, http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "The request body is too large and exceeds the maximum permissible limit.")
	default:
		length := max(r.ContentLength, 0)
		if !f.memory.take(length) {
			fail(w, http.StatusInsufficientStorage, "InsufficientStorage", "The emulator's memory is full. Delete something, or raise its limit.")
			return
		}
		defer f.memory.give(length)
		r.Body = flowing{http.MaxBytesReader(w, r.Body, maxBody), http.NewResponseController(w)}
		handler.ServeHTTP(w, r)
	}
}

// fail refuses a request before it reaches an account.
func fail(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("x-ms-error-code", code)
	w.Header().Set("Server", "aztest")
	w.WriteHeader(status)
	fmt.Fprintf(w, "\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
}
