package azaccount

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
)

// FuzzConnectionString plants a key and a signature among arbitrary fields. An account that is accepted has endpoints that
// are plain URLs; a refusal, like an account that is formatted, shows neither secret.
func FuzzConnectionString(f *testing.F) {
	for _, seed := range [][2]string{
		{"AccountName=acme;", ";EndpointSuffix=core.windows.net"},
		{"UseDevelopmentStorage=true;", ""},
		{"DefaultEndpointsProtocol=http;AccountName=acme;BlobEndpoint=http://127.0.0.1:10000/acme;", ";"},
		{"BlobEndpoint=http://h;UseDevelopmentStorage=true", ";"},
		{"AccountName=acme;BlobEndpoint=https://h/?sig=", ";"},
	} {
		f.Add(seed[0], seed[1], true)
		f.Add(seed[0], seed[1], false)
	}
	key := base64.StdEncoding.EncodeToString([]byte("T0PSECRET-T0PSECRET-T0PSECRET-key"))
	sig := "VDBQU0VDUkVUc2lnbmF0dXJl"
	f.Fuzz(func(t *testing.T, before, after string, signed bool) {
		text := before + "AccountKey=" + key + after
		if signed {
			text = before + "SharedAccessSignature=sv=2024-11-04&sig=" + sig + after
		}
		a, err := parseConnectionString(text)
		shown := ""
		if err != nil {
			shown = err.Error() + hintOf(err)
		} else {
			shown = a.String() + a.GoString()
			for s, endpoint := range a.endpoint {
				if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.RawQuery != "" || u.User != nil || strings.HasSuffix(endpoint, "/") {
					t.Errorf("%q: the endpoint of %s is %q", text, s, endpoint)
				}
			}
			if a.key != "" && a.sas != "" {
				t.Errorf("%q: a key and a SAS", text)
			}
		}
		// What a field with a known name holds may be repeated, if it is not one that holds a secret.
		for _, secret := range []string{key[:12], sig[:12]} {
			if strings.Contains(shown, secret) && !strings.Contains(before+after, secret) {
				t.Errorf("%q: %s", text, shown)
			}
		}
	})
}
