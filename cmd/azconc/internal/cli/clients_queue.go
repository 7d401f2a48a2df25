package cli

import (
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/idempotent"
)

// QueueService returns the client of the account's Queue service.
func (f *Factory) QueueService() (*azqueue.ServiceClient, error) {
	opts := &azqueue.ClientOptions{ClientOptions: f.ClientOptions()}
	opts.PerRetryPolicies = append(opts.PerRetryPolicies, idempotent.Policy())
	c, err := f.connectionTo(queueService)
	if err != nil {
		return nil, err
	}
	endpoint := strings.TrimSuffix(c.endpoint[queueService], "/")
	if endpoint == "" {
		return nil, noAccount()
	}
	switch {
	case c.key != "":
		cred, err := azqueue.NewSharedKeyCredential(c.account, c.key)
		if err != nil {
			return nil, Usagef("the account key is not usable")
		}
		return azqueue.NewServiceClientWithSharedKeyCredential(endpoint+"/", cred, opts)
	case c.sas != "":
		return azqueue.NewServiceClientWithNoCredential(endpoint+"/?"+c.sas, opts)
	default:
		cred, err := f.tokenCredential()
		if err != nil {
			return nil, err
		}
		return azqueue.NewServiceClient(endpoint+"/", cred, opts)
	}
}

// Queue returns the client of a queue.
func (f *Factory) Queue(name string) (*azqueue.QueueClient, error) {
	s, err := f.QueueService()
	if err != nil {
		return nil, err
	}
	return s.NewQueueClient(name), nil
}
