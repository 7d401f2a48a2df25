package replay

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// line is a recorded request with everything that must not be kept.
const line = `{"file":"test_x.test_y","i":0,"method":"PUT","path":"/box/blob","query":"comp=appendblock",
"request":{"authorization":"SharedKey a:TOPSECRET","x-ms-date":"Thu, 09 May 2019 00:37:41 GMT","x-ms-version":"2018-11-09",
"x-ms-encryption-key":"TOPSECRET","content-md5":"XUFAKrxLKna5cZ2REBfFkg==","if-match":"\"0x1\"",
"x-ms-copy-source":"https://account.blob.example/box/from?snapshot=2019&sv=1&se=2&sig=TOPSECRET"},
"requestBody":{"text":"hello"},"status":201,
"response":{"date":"Thu, 09 May 2019 00:37:41 GMT","etag":"\"0x2\"","x-ms-request-id":"1","x-ms-new":"value","content-length":"0"}}`

func compressed(t *testing.T, text string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestOnlyTheFactsAreDistilled(t *testing.T) {
	got, err := Distil(compressed(t, strings.ReplaceAll(line, "\n", "")), "blob")
	if err != nil || len(got) != 1 || len(got[0].Steps) != 1 {
		t.Fatalf("distilled %+v, %v", got, err)
	}
	want := Step{
		Method: "PUT", Path: "/box/blob", Query: "comp=appendblock", Length: 5,
		Header: map[string]string{
			"content-md5": RightSum, "if-match": `"0x1"`,
			"x-ms-copy-source": "https://account.blob.example/box/from?signed=1&snapshot=2019",
		},
		Answer: Answer{Status: 201, Header: map[string]string{"etag": `"0x2"`, "x-ms-new": "", "content-length": "0"}},
	}
	if !reflect.DeepEqual(got[0].Steps[0], want) {
		t.Errorf("distilled %+v,\nwant %+v", got[0].Steps[0], want)
	}
}

func TestNoSecretIsKept(t *testing.T) {
	for _, service := range Services {
		for _, s := range facts(t, service) {
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"TOPSECRET", "sig=", "SharedKey ", "Bearer ", `"x-ms-encryption-key"`, ".core.windows.net"} {
				if bytes.Contains(bytes.ReplaceAll(text, []byte("sig=removed"), nil), []byte(secret)) {
					t.Errorf("%s/%s contains %q", service, s.Name, secret)
				}
			}
		}
	}
}

func TestFactsAreWrittenAndRead(t *testing.T) {
	want := facts(t, "queue")
	var b bytes.Buffer
	if err := Write(&b, want); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "queue.jsonl.gz")
	writeFile(t, path, b.Bytes())
	got, err := Read(path, "queue")
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %d scenarios, %v, want the %d that were written", len(got), err, len(want))
	}
}

func TestLongWordsAreReplacedByTheirLength(t *testing.T) {
	word := strings.Repeat("Ab9+/", 20)
	short := Abbreviate(`{"a": "` + word + `", "b": "short"}`)
	if want := `{"a": "{x*100}", "b": "short"}`; short != want {
		t.Errorf("abbreviated %s, want %s", short, want)
	}
	if got := Expand(short); len(got) != len(`{"a": "", "b": "short"}`)+100 {
		t.Errorf("expanded to %d bytes", len(got))
	}
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
