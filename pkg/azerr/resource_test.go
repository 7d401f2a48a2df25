package azerr

import (
	"strings"
	"testing"

	"github.com/azconc/azconc/pkg/resource"
)

func TestPathNamesTheObjectAndNeverTheQuery(t *testing.T) {
	for _, tt := range []struct{ name, url, want string }{
		{"blob", "https://acct.blob.core.windows.net/c/dir/b.json", "c/dir/b.json"},
		{"container", "https://acct.blob.core.windows.net/c", "c"},
		{"sas", "https://acct.blob.core.windows.net/c/b?sv=2024&sig=TOPSECRET", "c/b"},
		{"escaped", "https://acct.blob.core.windows.net/c/a%20b", "c/a b"},
		{"emulator by address", "http://127.0.0.1:10000/devstoreaccount1/c/b", "c/b"},
		{"emulator by IPv6", "http://[::1]:10000/devstoreaccount1/c/b", "c/b"},
		{"emulator by name", "http://localhost:10000/devstoreaccount1/c", "c"},
		{"account only", "http://127.0.0.1:10000/devstoreaccount1", "(account)"},
		{"service root", "https://acct.queue.core.windows.net/", "(account)"},
		{"not a URL", "https://a b/?sig=TOPSECRET\x7f", "(unnamed resource)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := resource.Path(tt.url); got != tt.want {
				t.Errorf("Path(%q) = %q, want %q", tt.url, got, tt.want)
			}
		})
	}
}

// FuzzPathNeverShowsTheQuery names any URL with a signature in its query.
func FuzzPathNeverShowsTheQuery(f *testing.F) {
	for _, seed := range []string{"https://acct.blob.core.windows.net/c/b", "http://127.0.0.1:10000/devstoreaccount1/c", "http://[::1]:1/a/c%2fd", "//", "https://h/a#b", "http://localhost/a/%zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, url string) {
		if strings.Contains(url, "T0PSECRET") {
			return
		}
		got := resource.Path(url + "?sv=2024&sig=T0PSECRET")
		if got == "" || strings.Contains(got, "T0PSECRET") {
			t.Errorf("Path = %q", got)
		}
	})
}
