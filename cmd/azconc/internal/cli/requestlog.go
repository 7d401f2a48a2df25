package cli

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/pkg/azerr"
)

// requestLog counts the requests that were sent and prints them with --verbose: never a query string, since that is
// where a SAS lives.
type requestLog struct{ f *Factory }

func (l *requestLog) Do(req *policy.Request) (*http.Response, error) {
	l.f.Requests.Add(1)
	began := time.Now()
	resp, err := req.Next()
	if !l.f.verbose {
		return resp, err
	}
	fields := []string{req.Raw().Method, req.Raw().URL.EscapedPath()}
	if err != nil {
		fields = append(fields, "error:", azerr.Clean(err).Error())
	} else {
		fields = append(fields, fmt.Sprint(resp.StatusCode), cmp.Or(resp.Header.Get("x-ms-error-code"), "-"),
			cmp.Or(resp.Header.Get("x-ms-request-id"), "-"))
	}
	l.f.Notef("%s %dms", strings.Join(fields, " "), time.Since(began).Milliseconds())
	return resp, err
}
