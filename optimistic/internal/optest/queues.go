package optest

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/pkg/aztest"
)

// queues is a service that stores the settings of one queue and of the services, and nothing else.
type queues struct {
	*aztest.Injector

	mu       sync.Mutex // guards what follows
	metadata http.Header
	acl      string
	Settings string
}

// NewQueues returns a service with the settings of a new account.
func NewQueues(*testing.T, *aztest.Service) *queues {
	q := &queues{
		metadata: http.Header{}, acl: "<SignedIdentifiers/>",
		Settings: "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write>" +
			"<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging></StorageServiceProperties>",
	}
	q.Injector = aztest.Inject(queueTransport(q.carry), 1)
	return q
}

type queueTransport func(*http.Request) (*http.Response, error)

func (t queueTransport) Do(r *http.Request) (*http.Response, error) { return t(r) }

func (q *queues) options() policy.ClientOptions { return policy.ClientOptions{Transport: q} }

// Queue returns a client of the queue.
func (q *queues) Queue() *azqueue.QueueClient {
	client, err := azqueue.NewQueueClientWithNoCredential("http://127.0.0.1:10001/"+aztest.Account+"/jobs", &azqueue.ClientOptions{ClientOptions: q.options()})
	if err != nil {
		panic(err)
	}
	return client
}

// QueueService returns a client of the Queue service.
func (q *queues) QueueService() *azqueue.ServiceClient {
	client, err := azqueue.NewServiceClientWithNoCredential("http://127.0.0.1:10001/"+aztest.Account, &azqueue.ClientOptions{ClientOptions: q.options()})
	if err != nil {
		panic(err)
	}
	return client
}

// BlobService returns a client of the Blob service.
func (q *queues) BlobService() *service.Client {
	client, err := service.NewClientWithNoCredential("http://127.0.0.1:10000/"+aztest.Account, &service.ClientOptions{ClientOptions: q.options()})
	if err != nil {
		panic(err)
	}
	return client
}

func (q *queues) carry(r *http.Request) (*http.Response, error) {
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
	case comp == "metadata" && write:
		q.metadata, answer.StatusCode = metadataHeaders(r.Header), http.StatusNoContent
	case comp == "metadata":
		for name, values := range q.metadata {
			answer.Header[name] = values
		}
	case comp == "acl" && write:
		q.acl, answer.StatusCode = sent, http.StatusNoContent
	case comp == "acl":
		text = q.acl
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

func metadataHeaders(h http.Header) http.Header {
	kept := http.Header{}
	for name, values := range h {
		if name = http.CanonicalHeaderKey(name); strings.HasPrefix(name, "X-Ms-Meta-") {
			kept[name] = values
		}
	}
	return kept
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
