package cli

import (
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/azaccount"
)

// QueueService returns the client of the account's Queue service.
func (f *Factory) QueueService() (*azqueue.ServiceClient, error) {
	opts := &azqueue.ClientOptions{ClientOptions: f.ClientOptions()}
	opts.PerRetryPolicies = append(opts.PerRetryPolicies, idempotent.Policy())
	a, err := f.accountOf(azaccount.Queue)
	if err != nil {
		return nil, err
	}
	c, err := a.QueueService(opts)
	return c, connectionError(err)
}

// Queue returns the client of a queue.
func (f *Factory) Queue(name string) (*azqueue.QueueClient, error) {
	s, err := f.QueueService()
	if err != nil {
		return nil, err
	}
	return s.NewQueueClient(name), nil
}
