package aztest

import (
	"io"
	"net/http"
	"net/url"
)

// Proxy brings faults to a real service: it forwards every request to target's scheme and host, and makes some go
// wrong. Signatures stay valid, because none covers the host. It must be closed.
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

// handler serves an Injector over HTTP. What is an error to a Transporter is a broken connection here. host stands in
// for the one that a request on the server's side lacks; it tells the services of an account apart.
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
			_ = http.NewResponseController(w).Flush() // or net/http finds out the length by itself
		}
		if _, err := io.Copy(w, response.Body); err != nil {
			_ = http.NewResponseController(w).Flush() // what there is of the answer arrives
			panic(http.ErrAbortHandler)
		}
	})
}
