package idempotent

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/pkg/ptr"
)

// WorkerOptions configures a worker. The zero value selects the defaults.
type WorkerOptions struct {
	// ConsumerOptions are those of the Consumer, with these defaults: Poison is the queue "<queue>-poison", and Markers are
	// in the table "azconcmarkers" of the same account, unless Dedupe needs none. Both are created when
	// they are first needed. The queue itself is created only if CreateQueue is set: a wrong name is an error. So is a
	// name of more than 56 characters, to which "-poison" cannot be added, unless Poison is set.
	ConsumerOptions

	// Client configures the clients that are created.
	Client policy.ClientOptions

	_ struct{}
}

// The defaults of a worker, which are also those of queue consume of the command line: the table of the markers, and the end of
// the name of the poison queue.
const (
	workerMarkers = "azconcmarkers"
	poisonSuffix  = "-poison"

	maxQueueName = 63 // REST: "Naming queues and metadata"
)

// NewWorker returns a Consumer of the queue at a URL such as https://account.queue.core.windows.net/orders, with a poison
// queue and with markers, so that of several copies of a message one is handled. It creates the clients that these need,
// with Policy. The URL may have a SAS instead of a credential; it must be valid for the table too, unless there are no
// markers. NewWorker sends no request.
//
// The table service is expected at the same host with ".table." in place of ".queue."; if there is none, set Markers.
func NewWorker(queueURL string, credential azcore.TokenCredential, handler Handler, opts *WorkerOptions) (*Consumer, error) {
	at, err := url.Parse(queueURL)
	if err != nil || at.Host == "" {
		return nil, fmt.Errorf("worker: %q is not the URL of a queue", redactQuery(queueURL))
	}
	i := strings.LastIndex(at.Path, "/")
	if i < 0 || at.Path[i+1:] == "" {
		return nil, fmt.Errorf("worker: %q does not name a queue", redactQuery(queueURL))
	}
	name := at.Path[i+1:]
	at.Path = at.Path[:i]
	elsewhere := *at
	elsewhere.Host = strings.Replace(at.Host, ".queue.", ".table.", 1)
	o, queueClient, tableClient := opts.withClients()
	var queues *azqueue.ServiceClient
	var tables *aztables.ServiceClient
	if credential == nil {
		if queues, err = azqueue.NewServiceClientWithNoCredential(at.String(), queueClient); err == nil {
			tables, err = aztables.NewServiceClientWithNoCredential(elsewhere.String(), tableClient)
		}
	} else if queues, err = azqueue.NewServiceClient(at.String(), credential, queueClient); err == nil {
		tables, err = aztables.NewServiceClient(elsewhere.String(), credential, tableClient)
	}
	if err != nil {
		return nil, err
	}
	if elsewhere.Host == at.Host && o.wantsMarkers() {
		return nil, fmt.Errorf("worker: the host %s has no \".queue.\", so the table of the markers is not known: set Markers, or Dedupe to %s or %s", at.Host, DedupeInbox, DedupeNone)
	}
	return o.consumer(queues, tables, name, handler)
}

// NewWorkerFromConnectionString is NewWorker for a queue in the account of a connection string.
func NewWorkerFromConnectionString(connection, queue string, handler Handler, opts *WorkerOptions) (*Consumer, error) {
	if queue == "" {
		return nil, errors.New("worker: no queue name")
	}
	o, queueClient, tableClient := opts.withClients()
	queues, err := azqueue.NewServiceClientFromConnectionString(connection, queueClient)
	if err != nil {
		return nil, err
	}
	tables, err := aztables.NewServiceClientFromConnectionString(connection, tableClient)
	if err != nil {
		return nil, err
	}
	return o.consumer(queues, tables, queue, handler)
}

// withClients returns the options, and those of clients that have Policy.
func (o *WorkerOptions) withClients() (WorkerOptions, *azqueue.ClientOptions, *aztables.ClientOptions) {
	out := ptr.Value(o)
	client := out.Client
	client.PerRetryPolicies = append(slices.Clone(client.PerRetryPolicies), Policy())
	return out, &azqueue.ClientOptions{ClientOptions: client}, &aztables.ClientOptions{ClientOptions: client}
}

// wantsMarkers reports whether markers are needed and none are set.
func (o *WorkerOptions) wantsMarkers() bool {
	return o.Markers == nil && o.Dedupe != DedupeInbox && o.Dedupe != DedupeNone
}

func (o *WorkerOptions) consumer(queues *azqueue.ServiceClient, tables *aztables.ServiceClient, queue string, handler Handler) (*Consumer, error) {
	if o.Poison == nil {
		poison := queue + poisonSuffix
		if len(poison) > maxQueueName {
			return nil, fmt.Errorf("worker: the queue's name has %d characters, so %s, of more than %d, cannot be its poison queue: set Poison", len(queue), poison, maxQueueName)
		}
		o.Poison = queues.NewQueueClient(poison)
	}
	if o.wantsMarkers() {
		var err error
		if o.Markers, err = NewMarkers(tables.NewClient(workerMarkers), nil); err != nil {
			return nil, err
		}
	}
	return NewConsumer(queues.NewQueueClient(queue), handler, &o.ConsumerOptions)
}

// redactQuery returns a URL without its query, which may hold a SAS.
func redactQuery(s string) string {
	s, _, _ = strings.Cut(s, "?")
	return s
}

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
