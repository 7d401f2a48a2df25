package tfstate

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// maxState is the longest state, in bytes, that is accepted: what fits into memory more than once.
const maxState = 256 << 20

// Server serves a Session on the loopback interface, to the clients that know its password.
type Server struct {
	session  *Session
	address  string
	user     string
	password string
	requests atomic.Int64
	http     *http.Server
	ended    chan struct{}
}

// Serve listens on a free port of the loopback interface. Close or Abandon must be called.
func Serve(s *Session) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		if l, err = net.Listen("tcp", "[::1]:0"); err != nil {
			return nil, fmt.Errorf("listen on the loopback interface: %w", err)
		}
	}
	v := newServer(s)
	v.address = "http://" + l.Addr().String()
	v.http = &http.Server{Handler: v, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(v.ended)
		_ = v.http.Serve(l)
	}()
	return v, nil
}

func newServer(s *Session) *Server {
	return &Server{session: s, user: "azconc-" + rand.Text()[:8], password: rand.Text(), ended: make(chan struct{})}
}

// Environ returns the variables with which an http backend without attributes finds the server. The client's check of whether its
// configuration has changed does not see them, so each run may have others.
func (v *Server) Environ() []string {
	return []string{
		"TF_HTTP_ADDRESS=" + v.address + statePath,
		"TF_HTTP_LOCK_ADDRESS=" + v.address + lockPath,
		"TF_HTTP_UNLOCK_ADDRESS=" + v.address + unlockPath,
		"TF_HTTP_USERNAME=" + v.user,
		"TF_HTTP_PASSWORD=" + v.password,
	}
}

// Requests returns how many requests have been served.
func (v *Server) Requests() int64 { return v.requests.Load() }

// drain is how long requests that have begun may take when the client has ended.
const drain = 30 * time.Second

// Close stops the server, and closes its session: see Session.Close.
func (v *Server) Close() (id string, lost error) {
	v.Abandon()
	return v.session.Close()
}

// Abandon stops the server, and leaves the lock of its session to end by itself, when this process ends.
func (v *Server) Abandon() {
	v.session.close()
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	if v.http.Shutdown(ctx) != nil {
		_ = v.http.Close()
	}
	<-v.ended
}

// The paths have one purpose each, so that it does not matter which methods the backend's configuration names.
const (
	statePath  = "/state"
	lockPath   = "/lock"
	unlockPath = "/unlock"
)

// ServeHTTP implements http.Handler. A request whose client is gone is carried out all the same: its answer would have been lost.
func (v *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := v.serve(r)
	h := w.Header()
	h.Set("Content-Length", strconv.Itoa(len(a.body))) // without it, a client takes half of a state for all of it
	h.Set("Cache-Control", "no-store")
	if len(a.body) > 0 {
		h.Set("Content-Type", "application/json")
	}
	if a.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Basic realm="azconc"`)
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

func (v *Server) serve(r *http.Request) answer {
	user, password, _ := r.BasicAuth()
	if subtle.ConstantTimeCompare([]byte(user+"\x00"+password), []byte(v.user+"\x00"+v.password)) != 1 {
		return answer{status: http.StatusUnauthorized}
	}
	v.requests.Add(1)
	s := v.session
	body, err := wholeBody(r)
	s.turn.Lock()
	defer s.turn.Unlock()
	reading := r.Method == http.MethodGet
	switch {
	case err != nil:
		return s.refuse(http.StatusBadRequest, "a request was not carried out: %v", err)
	case r.URL.Path == statePath && reading:
		return s.read()
	case r.URL.Path == statePath && (r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch):
		return s.write(r.URL.Query().Get("ID"), body)
	case r.URL.Path == lockPath && !reading:
		return s.lock(body)
	case r.URL.Path == unlockPath && !reading:
		return s.unlockRequest(body)
	}
	return s.refuse(http.StatusMethodNotAllowed, "%s %.64q is not a request of the http backend", r.Method, r.URL.Path)
}

// wholeBody reads a body, and refuses one that is cut off.
func wholeBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxState+1))
	switch {
	case len(body) > maxState:
		return nil, fmt.Errorf("its body has more than %d bytes", maxState)
	case err != nil || r.ContentLength >= 0 && r.ContentLength != int64(len(body)):
		return nil, errors.New("its body is cut off")
	}
	return body, nil
}
