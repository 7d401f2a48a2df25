package cli

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
)

var (
	testKey = base64.StdEncoding.EncodeToString([]byte("the key of a test account, which is secret"))
	testSAS = "sv=2024-11-04&ss=b&sp=rw&sig=c2VjcmV0IHNpZ25hdHVyZQ%3D%3D"
)

func TestASettingThatCannotBeUsedIsAUsageErrorWithItsHint(t *testing.T) {
	s, _, _, _ := TestStreams()
	f := NewFactory(s, Env{"AZURE_STORAGE_ACCOUNT=acme", "AZURE_STORAGE_KEY=" + testKey, "AZURE_STORAGE_SAS_TOKEN=" + testSAS})
	defer f.Close()
	_, err := f.BlobService()
	if err == nil || fail.Judge(err).Code != fail.ExitUsage || !strings.Contains(fail.HintOf(err), "unset one of them") {
		t.Errorf("%v, hint %q; want a usage error with the way out", err, fail.HintOf(err))
	}
}

func TestACredentialIsNotShownToAnotherAccount(t *testing.T) {
	s, _, _, _ := TestStreams()
	f := NewFactory(s, Env{"AZURE_STORAGE_CONNECTION_STRING=AccountName=acme;AccountKey=" + testKey})
	defer f.Close()
	r, err := ref.ParseBlob("https://evil.blob.core.windows.net/jobs/a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.BlockBlob(r); err == nil || !strings.Contains(err.Error(), "a different account") {
		t.Errorf("a URL of another account: %v, want it refused", err)
	}
	r, err = ref.ParseBlob("https://evil.blob.core.windows.net/jobs/a?" + testSAS)
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.BlockBlob(r)
	if err != nil || !strings.HasPrefix(c.URL(), "https://evil.blob.core.windows.net/jobs/a?") {
		t.Errorf("a URL with its own SAS: %v", err)
	}
}

// A proxy that wants a password made the outcome of a write unknown.
func TestAProxyThatRefusesIsNamedAndNothingIsUnknown(t *testing.T) {
	for status, hint := range map[int]string{http.StatusProxyAuthRequired: "user and the password", http.StatusForbidden: "its operator"} {
		asked := 0
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked++; w.WriteHeader(status) }))
		at, err := url.Parse(proxy.URL)
		if err != nil {
			t.Fatal(err)
		}
		s, _, _, _ := TestStreams()
		f := NewFactory(s, Env{"AZURE_STORAGE_CONNECTION_STRING=AccountName=acme;AccountKey=" + testKey})
		f.sender()
		f.transport.Proxy = http.ProxyURL(at)
		client, err := f.BlockBlob(ref.Blob{Container: "jobs", Blob: "a"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = optimistic.Create(t.Context(), blobs.NewBytes(client), []byte("x"), nil)
		v := fail.Judge(err)
		if text := fail.Message(err, v, "", ""); v.Code != fail.ExitFailed || !strings.Contains(text, "the proxy "+proxy.URL+" refuses the connection: ") ||
			!strings.Contains(text, http.StatusText(status)) || !strings.Contains(fail.Hint(err, v, "", ""), hint) || asked != 1 {
			t.Errorf("%d: %q, hint %q, asked %d times", status, text, fail.Hint(err, v, "", ""), asked)
		}
		f.Close()
		proxy.Close()
	}
}
