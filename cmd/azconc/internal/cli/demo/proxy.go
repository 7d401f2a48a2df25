package demo

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"
)

// lossyProxy is a proxy between the demo and the service. It forwards every write and drops a fraction of the responses, like
// a network that fails at the wrong moment.
type lossyProxy struct {
	server *http.Server
	url    string
	writes atomic.Int64
	lost   atomic.Int64
	done   chan struct{}
}

var errAnswerLost = errors.New("response lost in transit")

func startLossyProxy(ctx context.Context, target string, oneIn int64) (*lossyProxy, error) {
	to, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &lossyProxy{url: "http://" + listener.Addr().String() + to.Path, done: make(chan struct{})}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
		},
		ModifyResponse: func(r *http.Response) error {
			if r.Request.Method == http.MethodGet || r.Request.Method == http.MethodHead || p.writes.Add(1)%oneIn != 0 {
				return nil
			}
			p.lost.Add(1)
			return errAnswerLost
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = &http.Server{Handler: forward, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(p.done)
		_ = p.server.Serve(listener)
	}()
	return p, nil
}

func (p *lossyProxy) close() {
	_ = p.server.Close()
	<-p.done
}
