package idempotent

import (
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/pkg/batch"
)

// Policy prepares a queue client for consuming, and a table client for Markers or an Inbox. Pass it to the client as one of its
// PerRetryPolicies:
//
//	azqueue.NewServiceClient(url, credential, &azqueue.ClientOptions{ClientOptions: policy.ClientOptions{
//		PerRetryPolicies: []policy.Policy{idempotent.Policy()}}})
//
// A Consumer works without it too, at a price. The SDK cannot renew a message without sending its text again (an empty
// one would erase it); with the policy, the text is not sent. Also, a Get Messages request is a GET, which net/http
// repeats by itself when a reused connection turns out to be closed: the messages of the lost response then stay hidden
// until their visibility timeout, unnoticed. The policy prevents this repetition, and the Consumer counts and reports
// the loss.
//
// With the policy, a table client sends the same entity group transactions for less processor time and memory: the SDK would
// decode and encode each entity once more, and allocate 32 KiB for it.
func Policy() policy.Policy { return prepared{} }

// prepared is the policy of queues and the policy of transactions. Each changes only requests that are marked in their context.
type prepared struct{}

func (prepared) Do(r *policy.Request) (*http.Response, error) {
	if batch.Pending(r.Raw().Context()) {
		return batch.Policy{}.Do(r)
	}
	return queues.Policy{}.Do(r)
}
