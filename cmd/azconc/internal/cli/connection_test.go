package cli

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
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
