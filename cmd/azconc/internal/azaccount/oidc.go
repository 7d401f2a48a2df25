package azaccount

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
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

// assertion asks for a token for Entra ID, again after temporary faults. Errors do not contain the run's own.
func (g *githubRun) assertion(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := runtime.NewRequest(ctx, http.MethodGet, g.url)
	if err != nil {
		return "", fmt.Errorf("%s is not a URL", githubURL)
	}
	query := request.Raw().URL.Query()
	query.Set("audience", "api://AzureADTokenExchange")
	request.Raw().URL.RawQuery = query.Encode()
	request.Raw().Header.Set("Authorization", "Bearer "+g.token)
	request.Raw().Header.Set("Accept", "application/json; api-version=2.0")
	pipeline := runtime.NewPipeline("azconc", "", runtime.PipelineOptions{}, &policy.ClientOptions{Transport: http.DefaultClient, Retry: policy.RetryOptions{TryTimeout: 10 * time.Second}})
	response, err := pipeline.Do(request)
	if err != nil {
		return "", fmt.Errorf("GitHub's token service: %w", err)
	}
	defer response.Body.Close()
	var answer struct{ Value string }
	switch err := runtime.UnmarshalAsJSON(response, &answer); {
	case response.StatusCode >= 400 && response.StatusCode < 500 && response.StatusCode != http.StatusTooManyRequests:
		return "", fmt.Errorf("GitHub's token service refuses the job with %s: it needs the permission id-token: write", response.Status)
	case response.StatusCode != http.StatusOK:
		return "", fmt.Errorf("GitHub's token service answers %s", response.Status)
	case err != nil || answer.Value == "":
		return "", errors.New("GitHub's token service returns no token")
	}
	return answer.Value, nil
}
