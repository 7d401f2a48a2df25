package root

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/aztest"
)

// refusing fails every request with an error code, as the service does.
func refusing(status int, code, detail string) policy.Transporter {
	return transport(func(r *http.Request) (*http.Response, error) {
		body := `<?xml version="1.0" encoding="utf-8"?><Error><Code>` + code + `</Code><Message>No.` + "\nRequestId:r1\nTime:2026-02-01T00:00:00.0000000Z</Message>"
		if detail != "" {
			body += "<AuthenticationErrorDetail>" + detail + "</AuthenticationErrorDetail>"
		}
		return &http.Response{
			StatusCode: status, Status: http.StatusText(status), Request: r, Body: io.NopCloser(strings.NewReader(body + "</Error>")),
			Header: http.Header{
				"X-Ms-Error-Code": {code}, "X-Ms-Request-Id": {"r1"}, "X-Ms-Version": {"2025-01-05"}, "Content-Type": {"application/xml"},
				"Server": {"Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0"}, "Date": {time.Now().UTC().Format(http.TimeFormat)},
			},
		}, nil
	})
}

func TestARefusalSaysWhyAndWhatToDo(t *testing.T) {
	key := []string{"--account-name", "acct", "--account-key", aztest.Key}
	sas := func(query string) []string {
		return []string{"--account-name", "acct", "--sas-token", query + "&sig=c2lnbmF0dXJlc2lnbmF0dXJl"}
	}
	get, put := []string{"blob", "get", "jobs/a"}, []string{"blob", "put", "jobs/a", "--file", "-"}
	for _, c := range []struct {
		name       string
		credential []string
		command    []string
		status     int
		code       string
		detail     string
		why, way   string
	}{
		{"keys disabled", key, get, 403, "KeyBasedAuthenticationNotPermitted", "", "allows neither keys nor SAS", "--auth-mode login"},
		{"network rules", key, put, 403, "AuthorizationFailure", "", "network rules do not admit this machine", "az storage account show --name acct "},
		{"SAS without the right", sas("sp=r&se=2099-01-01"), put, 403, "AuthorizationPermissionMismatch", "", `the SAS lacks the permission c or w: it grants "r"`, "missing permission"},
		{"SAS of another service", sas("ss=q&se=2099-01-01"), get, 403, "AuthorizationServiceMismatch", "", `the SAS does not cover the blob service: it covers "q"`, "this service"},
		{"SAS of another kind", sas("srt=s&se=2099-01-01"), get, 403, "AuthorizationResourceTypeMismatch", "", `it covers "s"`, "o (blob"},
		{"SAS of another address", sas("sip=10.0.0.1&se=2099-01-01"), get, 403, "AuthorizationSourceIPMismatch", "", `it covers "10.0.0.1"`, "this address"},
		{"SAS that expired", sas("sp=r&se=1999-12-31T12:00:00Z"), get, 403, "AuthenticationFailed", "Signature not valid in the specified time frame", "the SAS expired on 1999-12-31T12:00:00Z", "create a SAS that ends later"},
		{"SAS of tomorrow", sas("sp=r&st=2000-01-02&se=2099-01-01"), get, 403, "AuthenticationFailed", "", "not valid before 2000-01-02T00:00:00Z", "clocks differ"},
		{"SAS that does not match", sas("sp=r&se=2099-01-01"), get, 403, "AuthenticationFailed", "Signature did not match. String to sign used was acct\nrw", "403 AuthenticationFailed (request r1): the service does not accept the SAS", "is it complete"},
		{"another key", key, get, 403, "AuthenticationFailed", "The MAC signature found in the HTTP request 'x' is not the same as any computed signature.", "403 AuthenticationFailed (request r1): the service does not accept the account key", "az storage account keys list"},
		{"disabled", key, get, 403, "AccountIsDisabled", "", "the account is disabled", "enable it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stdin := func(s *cli.Streams) { s.In = strings.NewReader("x") }
				r := runOn(t.Context(), refusing(c.status, c.code, c.detail), stdin, cli.Env{"AZURE_STORAGE_CONNECTION_STRING="}, append(c.command, c.credential...)...)
				lines := strings.Split(r.stderr, "\n")
				if r.code != fail.ExitUnauthorised || len(lines) < 2 || !strings.Contains(lines[0], "not authorised: ") || !strings.Contains(lines[0], c.why) ||
					!strings.HasPrefix(lines[1], "azconc: hint: ") || !strings.Contains(lines[1], c.way) || strings.Contains(r.stderr, "c2ln") {
					t.Errorf("exit %d, %s, want %q and the hint %q", r.code, r.stderr, c.why, c.way)
				}
			})
		})
	}
}

func TestAWrongClockIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := refusing(403, "AuthenticationFailed", "Request date header too old")
		wire := transport(func(r *http.Request) (*http.Response, error) {
			resp, err := inner.Do(r)
			resp.Header.Set("Date", time.Now().Add(-2*time.Hour).UTC().Format(http.TimeFormat))
			return resp, err
		})
		r := runOn(t.Context(), wire, nil, nil, "blob", "get", "jobs/a")
		if r.code != fail.ExitUnauthorised || !strings.Contains(r.stderr, "this machine's clock is wrong by 2h0m0s") {
			t.Errorf("exit %d, %s", r.code, r.stderr)
		}
	})
}

// unavailable is a credential that cannot be used here.
type unavailable string

func (u unavailable) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, azidentity.NewCredentialUnavailableError(string(u))
}

func TestASignInThatFailsKeepsItsReason(t *testing.T) {
	chain, err := azidentity.NewChainedTokenCredential([]azcore.TokenCredential{
		unavailable("EnvironmentCredential: missing environment variable AZURE_TENANT_ID"),
		unavailable("AzureCLICredential: Azure CLI not found on path"),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = chain.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{"https://storage.azure.com/.default"}})
	why, way := fail.Message(err, fail.Judge(err), "", ""), fail.Hint(err, fail.Judge(err), "", "")
	if want := "not authorised: sign-in failed: EnvironmentCredential: missing environment variable AZURE_TENANT_ID; AzureCLICredential: Azure CLI not found on path"; why != want || way == "" {
		t.Errorf("%q, %q, want %q", why, way, want)
	}
	if v := fail.Judge(err); v.Code != fail.ExitUnauthorised {
		t.Errorf("judge = %+v", v)
	}
	body := `{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 1"}`
	refused := &azidentity.AuthenticationFailedError{RawResponse: &http.Response{StatusCode: 401, Body: io.NopCloser(strings.NewReader(body))}}
	if why := fail.Message(refused, fail.Judge(refused), "", ""); why != "not authorised: sign-in failed: AADSTS7000215: Invalid client secret provided" {
		t.Errorf("%q", why)
	}
}

func TestWhatDoesNotExistIsNamedWithTheCommandThatMakesIt(t *testing.T) {
	for _, c := range []struct{ args, noun, hint string }{
		{"blob show jobs/a", "container jobs", "azconc container create jobs creates it"},
		{"blob update jobs/a --create --set n=1", "container jobs", "azconc container create jobs creates it"},
		{"blob lease acquire jobs/a", "container jobs", "azconc container create jobs creates it"},
		{"container metadata show jobs", "container jobs", "azconc container create jobs creates it"},
		{"lock show jobs/nightly", "container jobs", "azconc container create jobs creates it"},
		{"table get jobs/eu/1", "table jobs", "azconc table create jobs creates it"},
		{"table insert jobs/eu/1 --set n=1", "table jobs", "azconc table create jobs creates it"},
		{"table update jobs/eu/1 --set n=1", "table jobs", "azconc table create jobs creates it"},
		{"table merge jobs/eu/1 --if-match * --set b=true", "table jobs", "azconc table create jobs creates it"},
		{"table transact jobs/eu --file -", "table jobs", "azconc table create jobs creates it"},
		{"queue send orders --file -", "queue orders", "azconc queue create orders creates it"},
		{"queue receive orders", "queue orders", "azconc queue create orders creates it"},
		{"table delete jobs", "table jobs", ""},
		{"container delete jobs", "container jobs", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			stdin := func(s *cli.Streams) { s.In = strings.NewReader(`{"op":"insert","row":"1","entity":{}}`) }
			r := runOn(t.Context(), aztest.New(nil), stdin, nil, append(strings.Fields(c.args), "-o", "json")...)
			v := r.json(t)
			if r.code != fail.ExitNotFound || v["error"] != "not found: there is no "+c.noun || c.hint != "" && v["hint"] != c.hint || c.hint == "" && v["hint"] != nil {
				t.Errorf("azconc %s: exit %d, %v, want no %s and the hint %q", c.args, r.code, v, c.noun, c.hint)
			}
		})
	}
	// The other end of a copy is the one that is missing.
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		if _, err := s.BlockBlob("jobs", "a").UploadBuffer(t.Context(), []byte("a"), nil); err != nil {
			t.Fatal(err)
		}
		r := runOn(t.Context(), s, nil, nil, "blob", "copy", "jobs/a", "other/b")
		if r.code != fail.ExitNotFound || !strings.Contains(r.stderr, "there is no container other\nazconc: hint: azconc container create other creates it") {
			t.Errorf("copy: exit %d, %s", r.code, r.stderr)
		}
	})
}
