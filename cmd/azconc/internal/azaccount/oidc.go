package azaccount

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/azconc/azconc/pkg/retry"
)

// newCredential returns the credential of Entra ID that the environment names. In a pipeline it exchanges the run's own token for
// each token of Entra ID, because the run's expires in minutes: a lock may be held for hours. DefaultAzureCredential knows neither
// pipeline. A variable that selects one of its credentials wins.
func newCredential(getenv func(string) string) (azcore.TokenCredential, error) {
	all := func(names ...string) bool {
		for _, name := range names {
			if getenv(name) == "" {
				return false
			}
		}
		return true
	}
	switch {
	case getenv("AZURE_TOKEN_CREDENTIALS") != "", getenv("AZURE_CLIENT_SECRET") != "", getenv("AZURE_CLIENT_CERTIFICATE_PATH") != "",
		getenv("AZURE_FEDERATED_TOKEN_FILE") != "":
	case all(githubURL, githubToken, "AZURE_CLIENT_ID", "AZURE_TENANT_ID"):
		github := &githubRun{url: getenv(githubURL), token: getenv(githubToken)}
		return azidentity.NewClientAssertionCredential(getenv("AZURE_TENANT_ID"), getenv("AZURE_CLIENT_ID"), github.assertion, nil)
	case all("SYSTEM_OIDCREQUESTURI", "SYSTEM_ACCESSTOKEN", pipelinesConnection):
		tenant, client := getenv("AZURESUBSCRIPTION_TENANT_ID"), getenv("AZURESUBSCRIPTION_CLIENT_ID")
		return azidentity.NewAzurePipelinesCredential(cmp.Or(tenant, getenv("AZURE_TENANT_ID")), cmp.Or(client, getenv("AZURE_CLIENT_ID")),
			getenv(pipelinesConnection), getenv("SYSTEM_ACCESSTOKEN"), nil)
	}
	return azidentity.NewDefaultAzureCredential(nil)
}

// The variables of a job of GitHub Actions with the permission "id-token: write", and of a task of Azure Pipelines with a service
// connection, whose SYSTEM_ACCESSTOKEN must be mapped by hand.
const (
	githubURL           = "ACTIONS_ID_TOKEN_REQUEST_URL"
	githubToken         = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
	pipelinesConnection = "AZURESUBSCRIPTION_SERVICE_CONNECTION_ID"
)

// githubRun is a job of GitHub Actions, which can ask for tokens that say so.
type githubRun struct{ url, token string }

const (
	assertionTries   = 3
	assertionTimeout = 10 * time.Second
)

// assertion asks for a token for Entra ID. Errors do not contain the run's own.
func (g *githubRun) assertion(ctx context.Context) (string, error) {
	loop := retry.Budget{Attempts: assertionTries, Elapsed: time.Minute, Backoff: retry.Backoff{Base: time.Second, Cap: 5 * time.Second}}.Start()
	for {
		token, err := g.ask(ctx)
		if err == nil {
			return token, nil
		}
		if final, stopped := retry.Stopped(err); stopped {
			return "", final
		}
		if waitErr := loop.Next(ctx, 0); waitErr != nil {
			return "", errors.Join(err, waitErr)
		}
	}
}

func (g *githubRun) ask(ctx context.Context) (string, error) {
	u, err := url.Parse(g.url)
	if err != nil {
		return "", retry.Stop(fmt.Errorf("%s is not a URL", githubURL))
	}
	query := u.Query()
	query.Set("audience", "api://AzureADTokenExchange")
	u.RawQuery = query.Encode()
	ctx, cancel := context.WithTimeout(ctx, assertionTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", retry.Stop(err)
	}
	request.Header.Set("Authorization", "Bearer "+g.token)
	request.Header.Set("Accept", "application/json; api-version=2.0")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("GitHub's token service: %w", err)
	}
	defer response.Body.Close()
	var answer struct{ Value string }
	err = json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&answer)
	switch {
	case response.StatusCode >= 400 && response.StatusCode < 500 && response.StatusCode != http.StatusTooManyRequests:
		return "", retry.Stop(fmt.Errorf("GitHub's token service refuses the job with %s: it needs the permission id-token: write", response.Status))
	case response.StatusCode != http.StatusOK:
		return "", fmt.Errorf("GitHub's token service answers %s", response.Status)
	case err != nil:
		return "", fmt.Errorf("GitHub's token service returns no token: %w", err)
	case answer.Value == "":
		return "", errors.New("GitHub's token service returns no token")
	}
	return answer.Value, nil
}
