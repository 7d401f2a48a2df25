package azaccount

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestPipelinesSignInWithTheirOwnToken: DefaultAzureCredential knows neither GitHub Actions nor Azure Pipelines.
func TestPipelinesSignInWithTheirOwnToken(t *testing.T) {
	const tenant, client = "AZURE_TENANT_ID=11111111-1111-1111-1111-111111111111", "AZURE_CLIENT_ID=22222222-2222-2222-2222-222222222222"
	github := env{"ACTIONS_ID_TOKEN_REQUEST_URL=https://token.example/?v=2", "ACTIONS_ID_TOKEN_REQUEST_TOKEN=run"}
	azure := env{"SYSTEM_OIDCREQUESTURI=https://dev.example/oidc", "SYSTEM_ACCESSTOKEN=run", "AZURESUBSCRIPTION_SERVICE_CONNECTION_ID=connection"}
	t.Setenv("SYSTEM_OIDCREQUESTURI", "https://dev.example/oidc") // azidentity reads it itself
	for _, c := range []struct {
		env  env
		want string
	}{
		{append(github[:2:2], tenant, client), "*azidentity.ClientAssertionCredential"},
		{append(github[:2:2], tenant), "*azidentity.DefaultAzureCredential"},
		{append(github[:1:1], tenant, client), "*azidentity.DefaultAzureCredential"},
		{append(github[:2:2], tenant, client, "AZURE_CLIENT_SECRET=x"), "*azidentity.DefaultAzureCredential"},
		{append(github[:2:2], tenant, client, "AZURE_TOKEN_CREDENTIALS=prod"), "*azidentity.DefaultAzureCredential"},
		{append(azure[:3:3], tenant, client), "*azidentity.AzurePipelinesCredential"},
		{append(azure[:3:3], "AZURESUBSCRIPTION_TENANT_ID=33333333-1111-1111-1111-111111111111", "AZURESUBSCRIPTION_CLIENT_ID=x"), "*azidentity.AzurePipelinesCredential"},
		{append(azure[:1:1], azure[2], tenant, client), "*azidentity.DefaultAzureCredential"}, // inside AzureCLI@2, where az is logged in
		{env{tenant, client}, "*azidentity.DefaultAzureCredential"},
	} {
		a, err := Resolve(Flags{AccountName: "acme"}, c.env.Get)
		if err != nil {
			t.Fatal(err)
		}
		credential, err := a.login.get()
		if got := fmt.Sprintf("%T", credential); err != nil || got != c.want {
			t.Errorf("%v: %s, %v; want %s", c.env, got, err, c.want)
		}
	}
}

// TestAJobOfGitHubAsksForATokenEachTime: with the audience of Entra ID, again after a fault, and not after a refusal.
func TestAJobOfGitHubAsksForATokenEachTime(t *testing.T) {
	var asked atomic.Int64
	answers := []int{http.StatusInternalServerError, http.StatusOK, http.StatusOK, http.StatusForbidden}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		if r.Header.Get("Authorization") != "Bearer run" || r.URL.Query().Get("audience") != "api://AzureADTokenExchange" || r.URL.Query().Get("v") != "2" {
			t.Errorf("asked with %v %v", r.URL, r.Header)
		}
		w.WriteHeader(answers[n-1])
		fmt.Fprintf(w, `{"count": 1, "value": "token-%d"}`, n)
	}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	job := &githubRun{url: server.URL + "/?v=2", token: "run"}
	for _, want := range []string{"token-2", "token-3"} {
		if got, err := job.assertion(t.Context()); got != want || err != nil {
			t.Errorf("%q, %v; want %s", got, err, want)
		}
	}
	if _, err := job.assertion(t.Context()); err == nil || !strings.Contains(err.Error(), "id-token: write") || strings.Contains(err.Error(), "run\"") {
		t.Errorf("a refusal: %v", err)
	}
	if asked.Load() != int64(len(answers)) {
		t.Errorf("asked %d times, want %d", asked.Load(), len(answers))
	}
}
