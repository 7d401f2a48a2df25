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
	o := opts.orDefault()
	queues, tables := *at, *at
	queues.Path = at.Path[:i]
	tables.Host, tables.Path = strings.Replace(at.Host, ".queue.", ".table.", 1), at.Path[:i]
	w := worker{queue: name, host: at.Host}
	if credential == nil {
		if w.queues, err = azqueue.NewServiceClientWithNoCredential(queues.String(), o.queues()); err == nil && tables.Host != at.Host {
			w.tables, err = aztables.NewServiceClientWithNoCredential(tables.String(), o.tables())
		}
	} else if w.queues, err = azqueue.NewServiceClient(queues.String(), credential, o.queues()); err == nil && tables.Host != at.Host {
		w.tables, err = aztables.NewServiceClient(tables.String(), credential, o.tables())
	}
	if err != nil {
		return nil, err
	}
	return w.consumer(handler, o.ConsumerOptions)
}

// NewWorkerFromConnectionString is NewWorker for a queue in the account of a connection string.
func NewWorkerFromConnectionString(connection, queue string, handler Handler, opts *WorkerOptions) (*Consumer, error) {
	if queue == "" {
		return nil, errors.New("worker: no queue name")
	}
	o := opts.orDefault()
	w := worker{queue: queue}
	var err error
	if w.queues, err = azqueue.NewServiceClientFromConnectionString(connection, o.queues()); err != nil {
		return nil, err
	}
	if w.tables, err = aztables.NewServiceClientFromConnectionString(connection, o.tables()); err != nil {
		return nil, err
	}
	return w.consumer(handler, o.ConsumerOptions)
}

// worker holds the clients of a Consumer.
type worker struct {
	queue  string
	host   string // set if tables may be nil
	queues *azqueue.ServiceClient
	tables *aztables.ServiceClient // nil if it is not known where the tables are
}

func (w worker) consumer(handler Handler, o ConsumerOptions) (*Consumer, error) {
	if o.Poison == nil {
		poison := w.queue + poisonSuffix
		if len(poison) > maxQueueName {
			return nil, fmt.Errorf("worker: the queue's name has %d characters, so %s, of more than %d, cannot be its poison queue: set Poison", len(w.queue), poison, maxQueueName)
		}
		o.Poison = w.queues.NewQueueClient(poison)
	}
	if _, known := o.Dedupe.mode(); o.Markers == nil && (o.Dedupe.NeedsMarkers() || !known) {
		if w.tables == nil {
			return nil, fmt.Errorf("worker: the host %s has no \".queue.\", so the table of the markers is not known: set Markers, or Dedupe to %s", w.host, named(func(m dedupeMode) bool { return !m.markers }, " or "))
		}
		var err error
		if o.Markers, err = NewMarkers(w.tables.NewClient(workerMarkers), nil); err != nil {
			return nil, err
		}
	}
	return NewConsumer(w.queues.NewQueueClient(w.queue), handler, &o)
}

func (o *WorkerOptions) orDefault() WorkerOptions {
	if o == nil {
		return WorkerOptions{}
	}
	return *o
}

func (o *WorkerOptions) queues() *azqueue.ClientOptions {
	return &azqueue.ClientOptions{ClientOptions: o.client()}
}

func (o *WorkerOptions) tables() *aztables.ClientOptions {
	return &aztables.ClientOptions{ClientOptions: o.client()}
}

// client returns the options of clients that have Policy.
func (o *WorkerOptions) client() policy.ClientOptions {
	client := o.Client
	client.PerRetryPolicies = append(slices.Clone(client.PerRetryPolicies), Policy())
	return client
}

// redactQuery returns a URL without its query, which may hold a SAS.
func redactQuery(s string) string {
	s, _, _ = strings.Cut(s, "?")
	return s
}
