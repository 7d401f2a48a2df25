package resource

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
			if got := Path(tt.url); got != tt.want {
				t.Errorf("Path(%q) = %q, want %q", tt.url, got, tt.want)
			}
		})
	}
}
