package fail

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/azerr"
)

var troubleshooting = regexp.MustCompile(`(?i)\.?\s*To troubleshoot, visit https://\S+`)

// signInFailure returns why there is no token: the error of each credential that was tried, or Entra ID's response.
func signInFailure(err error) string {
	var said string
	failed, ok := errors.AsType[*azidentity.AuthenticationFailedError](err)
	switch {
	case ok && failed.RawResponse != nil:
		said = cmp.Or(entraReason(failed.RawResponse), show.FirstLine(failed.Error()))
	case ok:
		said = failed.Error()
	case azerr.Classify(err).Kind == azerr.Unauthorised && azerr.Classify(err).Status == 0:
		why, _ := azerr.Explain(err)
		said, _, _ = strings.Cut(azerr.Redact(err.Error()), ": "+why)
	default:
		return ""
	}
	if strings.Contains(said, "non TLS protected") {
		return "" // a token is not sent without TLS: signing in again does not help
	}
	said = troubleshooting.ReplaceAllString(said, "")
	if _, tried, found := strings.Cut(said, "Attempted credentials:"); found {
		said = ""
		for line := range strings.Lines(tried) {
			if line = strings.TrimSpace(line); line != "" {
				said += "; " + line
			}
		}
		said = strings.TrimPrefix(said, "; ")
	}
	return "sign-in failed: " + show.OneLine(said)
}

// entraReason returns the first line of Entra ID's response, such as "AADSTS7000215: Invalid client secret provided".
func entraReason(r *http.Response) string {
	body, err := runtime.Payload(r)
	if err != nil {
		body, _ = io.ReadAll(io.LimitReader(r.Body, 1<<16))
	}
	var said struct {
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &said) != nil {
		return ""
	}
	return strings.TrimSuffix(show.FirstLine(said.Description), ".")
}
