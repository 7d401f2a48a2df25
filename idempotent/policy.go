package idempotent

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/idempotent/internal/queues"
)

// Policy prepares a queue client for consuming. Pass it to the client as one of its
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
func Policy() policy.Policy { return queues.Policy{} }
