package azerr

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestRedactBlanksEverySecretAndLeavesTheRest(t *testing.T) {
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k3y!", 16)))
	for in, want := range map[string]string{
		"https://a/c/b?sv=2024&sig=abc%3D&sp=r": "https://a/c/b?sv=2024&sig=REDACTED&sp=r",
		"sig=abc":                               "sig=REDACTED",
		"?SIG=abc":                              "?SIG=REDACTED",
		`"https://a/c?sig=abc"`:                 `"https://a/c?sig=REDACTED"`,
		"<Url>https://a/c?sig=abc</Url>":        "<Url>https://a/c?sig=REDACTED</Url>",
		"sig=":                                  "sig=",

		"copy from https%3A%2F%2Fa%2Fc%3Fsig%3Dabc":                          "copy from https%3A%2F%2Fa%2Fc%3Fsig%3DREDACTED",
		"twice https%253A%252F%252Fa%252Fc%253Fsig%253Dabc":                  "twice https%253A%252F%252Fa%252Fc%253Fsig%253DREDACTED",
		`{"url":"https://a/c?sv=1\u0026sig\u003dabc"}`:                       `{"url":"https://a/c?sv=1\u0026sig\u003dREDACTED"}`,
		"a=1&amp;sig&#61;abc&amp;b=2":                                        "a=1&amp;sig&#61;REDACTED&amp;b=2",
		"map[se:[2024] sig:[abc] sp:[r]]":                                    "map[se:[2024] sig:[REDACTED] sp:[r]]",
		`{"se":"2024","sig":"abc","sp":"r"}`:                                 `{"se":"2024","sig":"REDACTED","sp":"r"}`,
		"AccountName=dev;AccountKey=Eby8vdM02==;EndpointSuffix=x":            "AccountName=dev;AccountKey=REDACTED;EndpointSuffix=x",
		`{"accountKey": "Eby8vdM02=="}`:                                      `{"accountKey": "REDACTED"}`,
		"AccountKey%3DEby8vdM02":                                             "AccountKey%3DREDACTED",
		"SharedAccessKeyName=root;SharedAccessKey=abc=":                      "SharedAccessKeyName=root;SharedAccessKey=REDACTED",
		"SharedAccessSignature=sv=1&sig=abc;BlobEndpoint=http://x":           "SharedAccessSignature=sv=1&sig=REDACTED;BlobEndpoint=http://x",
		"AZURE_STORAGE_KEY=abc azconc":                                       "AZURE_STORAGE_KEY=REDACTED azconc",
		"client_secret=abc&grant_type=x":                                     "client_secret=REDACTED&grant_type=x",
		`{"access_token":"eyJ0","expires_in":1}`:                             `{"access_token":"REDACTED","expires_in":1}`,
		"x-ms-encryption-key: abc= x-ms-encryption-key-sha256: def":          "x-ms-encryption-key: REDACTED x-ms-encryption-key-sha256: def",
		"Authorization: SharedKey acct:c2lnbmF0dXJl":                         "Authorization: SharedKey REDACTED",
		"SharedKeyLite acct:c2lnbmF0dXJl":                                    "SharedKeyLite acct:REDACTED",
		"authorization: Bearer eyJ0":                                         "authorization: Bearer REDACTED",
		"got Bearer eyJ0eXAiOiJKV1QiLCJhbGciOi.x_y-z in a log":               "got Bearer REDACTED in a log",
		"map[Authorization:[SharedKey acct:abc=] Date:[x]]":                  "map[Authorization:[SharedKey REDACTED] Date:[x]]",
		"x-ms-copy-source-authorization: Bearer eyJ0":                        "x-ms-copy-source-authorization: Bearer REDACTED",
		"proxy http://me:hunter2@proxy:3128/":                                "proxy http://me:REDACTED@proxy:3128/",
		"illegal key " + key + " given":                                      "illegal key REDACTED given",
		"escaped " + url.QueryEscape(key):                                    "escaped REDACTED",
		"The MAC signature found in the HTTP request 'GNlabc=' is not ours.": "The MAC signature found in the HTTP request REDACTED is not ours.",

		"the design=good and the signature is fine":                             "the design=good and the signature is fine",
		"409 LeaseAlreadyPresent: There is already a lease present. c/sig/b":    "409 LeaseAlreadyPresent: There is already a lease present. c/sig/b",
		"get c/sig: not found":                                                  "get c/sig: not found",
		"http://127.0.0.1:10000/devstoreaccount1/c/a@b":                         "http://127.0.0.1:10000/devstoreaccount1/c/a@b",
		"SharedKey authorization is not permitted; the Bearer of this has none": "SharedKey authorization is not permitted; the Bearer of this has none",
		"If-Match: \"0x8DC6F0A1B2C3D4E\"":                                       "If-Match: \"0x8DC6F0A1B2C3D4E\"",
		"lease 5f0c8c5e-6d3b-4d5b-9a53-7f3f5b1c2d3e":                            "lease 5f0c8c5e-6d3b-4d5b-9a53-7f3f5b1c2d3e",
		"": "",
	} {
		got := Redact(in)
		if got != want {
			t.Errorf("Redact(%q)\n got %q\nwant %q", in, got, want)
		}
		if again := Redact(got); again != got {
			t.Errorf("twice: Redact(%q) = %q", got, again)
		}
	}
}

// hidings are the places in which a secret has been seen to turn up, and how it is written there.
func hidings(secret string) map[string]string {
	escaped := url.QueryEscape(secret)
	sas := "https://acct.blob.core.windows.net/c/b?sv=2024-11-04&sig=" + escaped + "&sp=rw"
	quoted, err := json.Marshal(map[string]string{"url": sas})
	if err != nil {
		panic(err)
	}
	parsed, err := url.Parse(sas)
	if err != nil {
		panic(err)
	}
	return map[string]string{
		"URL":                  sas,
		"query":                "?sig=" + escaped,
		"unescaped":            "sig=" + secret,
		"escaped once":         url.QueryEscape(sas),
		"escaped twice":        url.QueryEscape(url.QueryEscape(sas)),
		"escaped thrice":       url.QueryEscape(url.QueryEscape(url.QueryEscape(sas))),
		"HTML":                 html.EscapeString(sas),
		"JSON":                 string(quoted),
		"quoted":               fmt.Sprintf("%q", sas),
		"parsed":               fmt.Sprint(parsed.Query()),
		"connection string":    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=" + secret + ";EndpointSuffix=x",
		"its SAS":              "BlobEndpoint=https://a;SharedAccessSignature=sv=1&sig=" + escaped + ";",
		"shared key":           "SharedKey acct:" + secret,
		"header":               fmt.Sprint(http.Header{"Authorization": {"SharedKey acct:" + secret}}),
		"request":              "Authorization: Bearer " + secret + "\r\nHost: x",
		"customer-supplied":    "x-ms-encryption-key: " + secret,
		"the service's own":    "<AuthenticationErrorDetail>The MAC signature found in the HTTP request '" + secret + "' is not the same as any computed signature.",
		"environment":          "AZURE_STORAGE_KEY=" + secret,
		"connection, as JSON":  fmt.Sprintf("%q", "AccountKey="+secret),
		"connection, escaped":  url.QueryEscape("AccountName=a;AccountKey=" + secret + ";"),
		"command line, quoted": "--connection-string 'AccountKey=" + secret + "'",
	}
}

// FuzzRedactNeverShowsThePlantedSecret plants a signature, as the service makes them, in every place there is, with
// arbitrary text right before and behind.
func FuzzRedactNeverShowsThePlantedSecret(f *testing.F) {
	f.Add("get ", ": refused", []byte("0123456789abcdef0123456789abcdef"))
	f.Add("", "", []byte("\xff\xfe\xfd\xfb\xff\xfe\xfd\xfb\xff\xfe\xfd\xfb"))
	f.Add("sig=", "&sig=", []byte("aaaaaaaaaaaaaaaaaaaa"))
	f.Add("AccountKey", "=;", []byte("sig=sig=sig=sig="))
	f.Add("%25", "%3D", []byte("0123456789abcdef"))
	f.Add("://a:", "@", []byte("0123456789abcdef"))
	f.Add("Authorization: ", "]", []byte("0123456789abcdef"))
	f.Fuzz(func(t *testing.T, before, after string, raw []byte) {
		if len(raw) < 12 {
			return // too short to tell it from the text around it
		}
		secret := base64.StdEncoding.EncodeToString(raw)
		// Whatever way it was escaped, the letters and digits stay. A run of them long enough to matter must not.
		plain := longestRun(secret)
		if len(plain) < 12 || strings.Contains(before+after, plain) {
			return
		}
		for place, text := range hidings(secret) {
			in := before + text + after
			if strings.Contains(text, plain) && strings.Contains(Redact(in), plain) {
				t.Errorf("%s: Redact(%q) shows %s: %q", place, in, plain, Redact(in))
			}
		}
	})
}

// longestRun returns the longest run of letters and digits in s.
func longestRun(s string) string {
	longest := ""
	for run := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune("+/=", r) }) {
		if len(run) > len(longest) {
			longest = run
		}
	}
	return longest
}

// BenchmarkRedact shows that the effort is linear: MB/s must not depend on the length. A text made of nothing but names
// once took minutes, and what an answer says is up to others.
func BenchmarkRedact(b *testing.B) {
	for _, unit := range []string{"sig=", "Authorization:Authorization=", "a", "412 ConditionNotMet (request 1a2b) "} {
		for _, size := range []int{1 << 10, 1 << 16} {
			in := strings.Repeat(unit, size/len(unit))
			b.Run(fmt.Sprintf("%s/%d", strings.TrimSpace(unit), size), func(b *testing.B) {
				b.SetBytes(int64(len(in)))
				for b.Loop() {
					Redact(in)
				}
			})
		}
	}
}
