package wire_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/wire"
)

// put sends a PUT through the SDK's pipeline over a real transport.
func put(t *testing.T, transport *http.Transport, to string, try time.Duration) error {
	t.Helper()
	defer transport.CloseIdleConnections()
	pipeline := runtime.NewPipeline("test", "v0", runtime.PipelineOptions{}, &policy.ClientOptions{Transport: &http.Client{Transport: transport}})
	return wire.Wire{}.Once(t.Context(), "put", try, func(ctx context.Context) error {
		req, err := runtime.NewRequest(ctx, http.MethodPut, to)
		if err != nil {
			return err
		}
		_, err = pipeline.Do(req)
		return err
	})
}

// A proxy that refuses CONNECT was reported as an unknown outcome: net/http has no type for its answer.
func TestAProxyThatRefusesHasSentNothing(t *testing.T) {
	for _, status := range []int{http.StatusProxyAuthRequired, http.StatusForbidden, http.StatusBadGateway} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		at, err := url.Parse(proxy.URL)
		if err != nil {
			t.Fatal(err)
		}
		err = put(t, &http.Transport{Proxy: http.ProxyURL(at)}, "https://acct.blob.core.windows.net/box/b", 0)
		if o := azerr.Classify(err); o.Kind != azerr.Unreachable || o.Ambiguous() || !o.Transient() || !strings.Contains(err.Error(), http.StatusText(status)) {
			t.Errorf("%d: %v is %+v, want it unreachable", status, err, o)
		}
		proxy.Close()
	}
}

func TestATryThatEndsBeforeItHasAConnectionHasSentNothing(t *testing.T) {
	silent := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	err := put(t, &http.Transport{DialContext: silent}, "http://acct.blob.core.windows.net/box/b", 20*time.Millisecond)
	if o := azerr.Classify(err); o.Kind != azerr.Unreachable || o.Ambiguous() {
		t.Errorf("%v is %+v, want it unreachable", err, o)
	}
}

// TestAConnectionThatBreaksMayHaveCarriedARequest: once net/http has a connection, nothing is known, also if the next one fails.
func TestAConnectionThatBreaksMayHaveCarriedARequest(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer server.Close()
	err := put(t, &http.Transport{}, server.URL+"/box/b", 0)
	if o := azerr.Classify(err); o.Kind != azerr.Unknown || !o.Ambiguous() {
		t.Errorf("%v is %+v, want it ambiguous", err, o)
	}
}
