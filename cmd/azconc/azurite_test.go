package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// emulated returns an account of Azurite, or, in a short run, of a service in memory.
func emulated(t *testing.T) azurite.Account {
	t.Helper()
	if !testing.Short() {
		return azuritetest.Account(t)
	}
	service := aztest.New(nil)
	return azurite.Account{
		Name: aztest.Account, Key: aztest.Key,
		BlobURL: served(t, service.BlobHandler()), QueueURL: served(t, service.QueueHandler()), TableURL: served(t, service.TableHandler()),
	}
}

// inMemory returns the connection string of a service in memory with all four of its parts on loopback.
func inMemory(t *testing.T) string {
	return connected(t, aztest.New(nil))
}

// connected returns the connection string of a service on loopback.
func connected(t *testing.T, service *aztest.Service) string {
	return aztest.ConnectionString(served(t, service.BlobHandler())) + "TableEndpoint=" + served(t, service.TableHandler()) +
		";QueueEndpoint=" + served(t, service.QueueHandler()) + ";FileEndpoint=" + served(t, service.FileHandler()) + ";"
}

// served returns the URL of the account of one service on loopback.
func served(t *testing.T, service http.Handler) string {
	t.Helper()
	s := httptest.NewServer(service)
	t.Cleanup(s.Close)
	return s.URL + "/" + aztest.Account
}

// lossy returns the connection string of an account whose blobs and tables are behind a way that loses responses.
func lossy(t *testing.T, account azurite.Account) string {
	t.Helper()
	account.BlobURL, account.TableURL = lossyWay(t, account.BlobURL), lossyWay(t, account.TableURL)
	return account.ConnectionString()
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

// needAzurite skips a test if AZCONC_SKIP_AZURITE is set. Otherwise a missing Azurite is a failure.
func needAzurite(t *testing.T) {
	t.Helper()
	if os.Getenv(azuritetest.SkipVariable) == "1" {
		t.Skip("SKIP: " + azuritetest.SkipVariable + "=1")
	}
}
