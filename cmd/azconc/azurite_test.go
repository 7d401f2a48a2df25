package main

import (
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

func connectionTo(blobs, tables string) string {
	return aztest.ConnectionString(strings.TrimSuffix(blobs, "/")) + "TableEndpoint=" + strings.TrimSuffix(tables, "/") + ";"
}

// lossyWay puts a proxy that loses one response in five in front of a service, and returns its URL.
func lossyWay(t *testing.T, service string) string {
	t.Helper()
	target, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	path := target.Path
	target.Path = ""
	proxy := aztest.NewProxy(target, 1, aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.2})
	t.Cleanup(proxy.Close)
	front := httptest.NewServer(proxy.Handler())
	t.Cleanup(front.Close)
	return front.URL + path
}

func startAzurite(t *testing.T) azurite.Account {
	t.Helper()
	needAzurite(t)
	server, err := azurite.Start(t.Context(), nil)
	if err != nil {
		t.Fatalf("start Azurite: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("stop Azurite: %v", err)
		}
	})
	return server.Account()
}

// needAzurite skips a test if AZCONC_SKIP_AZURITE is set. Otherwise a missing Azurite is a failure.
func needAzurite(t *testing.T) {
	t.Helper()
	if os.Getenv(azuritetest.SkipVariable) == "1" {
		t.Skip("SKIP: " + azuritetest.SkipVariable + "=1")
	}
}
