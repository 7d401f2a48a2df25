package aztest

import (
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// Proxy injects faults in front of a real service: it forwards every request to target's scheme and host. Signatures
// stay valid, because they do not cover the host. It must be closed.
type Proxy struct {
	*Injector
	client *http.Transport
}

// NewProxy returns a Proxy to target. Serve it with Handler.
func NewProxy(target *url.URL, seed uint64, faults ...Fault) *Proxy {
	p := &Proxy{client: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}
	p.Injector = Inject(transport(func(r *http.Request) (*http.Response, error) {
		r.URL.Scheme, r.URL.Host, r.RequestURI = target.Scheme, target.Host, ""
		r.Host = target.Host
		return p.client.RoundTrip(r)
	}), seed, faults...)
	return p
}

// Handler serves the proxy.
func (p *Proxy) Handler() http.Handler { return p.handler("") }

// Close drops the connections to the target.
func (p *Proxy) Close() { p.client.CloseIdleConnections() }

// handler serves an Injector over HTTP. An error of a Transporter is a broken connection here. host replaces the host
// that a request on the server's side lacks; it identifies the service of the account.
func (i *Injector) handler(host string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		hr.URL.Scheme, hr.URL.Host = "http", host
		response, err := i.Do(hr)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer response.Body.Close()
		for name, values := range response.Header {
			w.Header()[http.CanonicalHeaderKey(name)] = values
		}
		w.WriteHeader(response.StatusCode)
		if response.ContentLength < 0 && response.Header.Get("Content-Length") == "" {
			_ = http.NewResponseController(w).Flush() // otherwise net/http computes a Content-Length
		}
		if _, err := io.Copy(w, response.Body); err != nil {
			_ = http.NewResponseController(w).Flush() // the part of the response that arrives
			panic(http.ErrAbortHandler)
		}
	})
}

// page returns the response of an intermediary that does not pass a request on, or does not wait for its response.
func page(hr *http.Request, status int) *http.Response {
	a := storage.OK(status).Set("Content-Type", "text/html; charset=utf-8").Set("Server", "intermediary")
	a.Body = fmt.Appendf(nil, "<!DOCTYPE html>\n<html><head><title>%d %s</title></head>"+
		"<body><h1>Sign in to use this network</h1></body></html>\n", status, http.StatusText(status))
	return a.Response(hr)
}

// rechunk removes the length from a response, and the headers in drop.
func rechunk(response *http.Response, drop []string) *http.Response {
	response.Header.Del("Content-Length")
	response.ContentLength = -1
	for _, name := range drop {
		response.Header.Del(name)
	}
	return response
}
