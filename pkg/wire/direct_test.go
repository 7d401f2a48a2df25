package wire_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/wire"
)

// TestOnlyAPathWithoutIntermediariesIsDirect: on every other one a proxy may deliver a request twice.
func TestOnlyAPathWithoutIntermediariesIsDirect(t *testing.T) {
	for address, want := range map[string]bool{
		"https://acct.blob.core.windows.net/c/b":             true,
		"https://ACCT.Blob.Core.Windows.Net:443/c/b":         true,
		"https://acct.table.core.windows.net/t()":            true,
		"https://acct-secondary.blob.core.windows.net/c/b":   true,
		"https://acct.queue.core.chinacloudapi.cn/q":         true,
		"https://acct.file.core.usgovcloudapi.net/s":         true,
		"https://acct.z42.blob.storage.azure.net/c/b":        true,
		"https://acct.privatelink.blob.core.windows.net/c/b": true,
		"http://127.0.0.1:10000/devstoreaccount1/c/b":        true,
		"http://[::1]:10000/devstoreaccount1/c/b":            true,
		"http://[::ffff:127.0.0.1]:10000/c/b":                true,
		"http://localhost:10000/devstoreaccount1/c/b":        true,
		"http://acct.blob.localhost:10000/c/b":               true,

		"http://acct.blob.core.windows.net/c/b":              false,
		"https://files.example.org/c/b":                      false,
		"https://acct.blob.core.windows.net.example.org/c/b": false,
		"https://xcore.windows.net/c/b":                      false,
		"http://10.0.0.7:10000/devstoreaccount1/c/b":         false,
		"http://azurite:10000/devstoreaccount1/c/b":          false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		answer := &azcore.ResponseError{StatusCode: 412, RawResponse: &http.Response{StatusCode: 412, Request: &http.Request{URL: u}}}
		if got := wire.Direct(fmt.Errorf("update: %w", azerr.Clean(answer))); got != want {
			t.Errorf("Direct(a response from %s) = %v, want %v", address, got, want)
		}
	}
	for _, err := range []error{nil, errors.New("EOF"), &azcore.ResponseError{StatusCode: 412}, &azcore.ResponseError{RawResponse: &http.Response{}}} {
		if wire.Direct(err) {
			t.Errorf("Direct(%v) = true although there is no response", err)
		}
	}
}
