package idempotent

import (
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
)

// consumers are the running Consumers of this process, by queue: a message sent from this process need not wait for
// their next poll.
var consumers registry

type registry struct {
	mu  sync.Mutex
	all map[string]map[*Consumer]bool
}

// queueOf distinguishes queues of different accounts, which their paths do not.
func queueOf(queue *azqueue.QueueClient) string {
	url, _, _ := strings.Cut(queue.URL(), "?")
	return url
}

// add registers a consumer until remove is called.
func (r *registry) add(c *Consumer) (remove func()) {
	queue := queueOf(c.queue)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]map[*Consumer]bool{}
	}
	if r.all[queue] == nil {
		r.all[queue] = map[*Consumer]bool{}
	}
	r.all[queue][c] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if delete(r.all[queue], c); len(r.all[queue]) == 0 {
			delete(r.all, queue)
		}
	}
}

func (r *registry) wake(queue string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.all[queue] {
		c.Wake()
	}
}
