package settings

import (
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/pkg/aztest"
)

// services stores the properties of an account's services, and nothing else.
type services struct {
	*aztest.Injector

	mu       sync.Mutex // guards Settings
	Settings string
}

// newServices returns the services of a new account.
func newServices() *services {
	q := &services{
		Settings: "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write>" +
			"<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging></StorageServiceProperties>",
	}
	q.Injector = aztest.Inject(serviceTransport(q.carry), 1)
	return q
}

type serviceTransport func(*http.Request) (*http.Response, error)

func (t serviceTransport) Do(r *http.Request) (*http.Response, error) { return t(r) }

func (q *services) options() policy.ClientOptions { return policy.ClientOptions{Transport: q} }

// QueueService returns a client of the Queue service.
func (q *services) QueueService() *azqueue.ServiceClient {
	client, err := azqueue.NewServiceClientWithNoCredential("http://127.0.0.1:10001/"+aztest.Account, &azqueue.ClientOptions{ClientOptions: q.options()})
	if err != nil {
		panic(err)
	}
	return client
}

func (q *services) carry(r *http.Request) (*http.Response, error) {
	sent := ""
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		sent = string(text)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"X-Ms-Version": {"2024-11-04"}}, Request: r}
	text := ""
	switch comp, write := r.URL.Query().Get("comp"), r.Method == http.MethodPut; {
	case comp == "properties" && write:
		q.Settings, answer.StatusCode = merged(q.Settings, sent), http.StatusAccepted
	case comp == "properties":
		text = q.Settings
	default:
		answer.StatusCode = http.StatusNotImplemented
	}
	answer.Body, answer.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	return answer, nil
}

// merged returns the properties that are sent, with the sections of old that are not, as the services do.
func merged(old, sent string) string {
	for _, section := range []string{"Logging", "HourMetrics", "MinuteMetrics", "Cors", "DeleteRetentionPolicy", "StaticWebsite"} {
		if strings.Contains(sent, "<"+section+">") {
			continue
		}
		from, to := strings.Index(old, "<"+section+">"), strings.Index(old, "</"+section+">")
		if from >= 0 {
			sent = strings.Replace(sent, "</StorageServiceProperties>", old[from:to]+"</"+section+"></StorageServiceProperties>", 1)
		}
	}
	return sent
}
