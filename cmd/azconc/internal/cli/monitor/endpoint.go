package monitor

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/azconc/azconc/pkg/observe"
)

// endpoint serves /metrics, /livez and /readyz.
type endpoint struct {
	server *http.Server
	at     net.Addr
	ready  atomic.Bool
	drains atomic.Bool
	done   sync.WaitGroup
}

func serve(ctx context.Context, address string, metrics prometheus.Gatherer) (*endpoint, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	e := &endpoint{at: listener.Addr()}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !e.ready.Load() || e.drains.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	e.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, WriteTimeout: 30 * time.Second}
	e.done.Go(func() { _ = e.server.Serve(listener) })
	return e, nil
}

// close ends the requests under way: a scraper that reads slowly must not keep a command from ending.
func (e *endpoint) close() {
	_ = e.server.Close()
	e.done.Wait()
}

// Ready says whether the command is at work, which /readyz shows: it holds its lock, or receives messages.
func (m *Monitor) Ready(ready bool) {
	if m != nil && m.serving != nil {
		m.serving.ready.Store(ready)
	}
}

// Drain says that the command takes no more work: it is not ready from now on.
func (m *Monitor) Drain() {
	if m != nil && m.serving != nil {
		m.serving.drains.Store(true)
	}
}

// Receiving is a hook for spans: a consumer is ready while the service answers its receives.
func (m *Monitor) Receiving(ctx context.Context, s observe.Span) (context.Context, func(error)) {
	if s.Name != "Get Messages" {
		return ctx, nil
	}
	return ctx, func(err error) { m.Ready(err == nil) }
}

// Address returns where the endpoint listens, or "" if there is none.
func (m *Monitor) Address() string {
	if m == nil || m.serving == nil {
		return ""
	}
	return m.serving.at.String()
}
