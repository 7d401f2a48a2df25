package idempotent

import (
	"context"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// notes records the outcomes of messages. Messages of one partition that are concluded at about the same time are
// recorded in one transaction: it starts when no other handler runs, when there are 32, or after 10 ms.
type notes struct {
	c *Consumer
	k *Markers

	mu    sync.Mutex
	parts map[string]*page
}

// page is what is to be written to one partition.
type page struct {
	open []*note
	full chan struct{} // closed when it is not to wait for more notes
	size int
}

// note is one marker to be written.
type note struct {
	write
	done chan error
}

const (
	linger   = 10 * time.Millisecond
	maxNotes = maxReceive
	maxPage  = 2 << 20 // of results (REST: "Performing entity group transactions", 4 MiB, of which base64 takes a third)
)

// write returns when the marker is written. added is called once it is queued.
func (n *notes) write(ctx context.Context, partition string, w write, added func()) error {
	one := &note{w, make(chan error, 1)}
	n.mu.Lock()
	p := n.parts[partition]
	if p == nil {
		p = &page{full: make(chan struct{})}
		n.parts[partition] = p
		n.c.pool.run(func() { n.send(partition, p) })
	}
	p.open = append(p.open, one)
	if p.size += len(w.m.Result); len(p.open) == maxNotes || p.size >= maxPage {
		n.shut(partition, p)
	}
	n.mu.Unlock()
	added()
	select {
	case err := <-one.done:
		return err
	case <-ctx.Done():
		return n.k.failed(context.Cause(ctx))
	}
}

// shut makes a page be written as it is. mu is held.
func (n *notes) shut(partition string, p *page) {
	delete(n.parts, partition)
	close(p.full)
}

// flush makes all pages be written as they are.
func (n *notes) flush() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for partition, p := range n.parts {
		n.shut(partition, p)
	}
}

// send writes a page.
func (n *notes) send(partition string, p *page) {
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case <-p.full:
	case <-timer.C:
		n.mu.Lock()
		if n.parts[partition] == p {
			n.shut(partition, p)
		}
		n.mu.Unlock()
	}
	ctx, cancel := retry.Detached(n.c.stopping, tryTimeout)
	defer cancel()
	writes := make([]write, len(p.open))
	for i, one := range p.open {
		writes[i] = one.write
	}
	err := n.k.submit(ctx, partition, aztables.TransactionTypeInsertReplace, writes)
	for i, one := range p.open {
		if err != nil && azerr.Classify(err).Kind == azerr.BadInput && len(writes) > 1 { // one of them cannot be written
			one.done <- n.k.failed(n.k.submit(ctx, partition, aztables.TransactionTypeInsertReplace, writes[i:i+1]))
			continue
		}
		one.done <- n.k.failed(err)
	}
}

// late holds markers of messages that were handled and deleted while the table did not answer. They are written when it
// answers.
type late struct {
	k *Markers

	mu   sync.Mutex
	open map[string][]write // by partition
}

func (l *late) add(partition string, w write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[string][]write{}
	}
	l.open[partition] = append(l.open[partition], w)
}

// flush writes as many markers as it can.
func (l *late) flush(ctx context.Context) {
	l.mu.Lock()
	open := l.open
	l.open = nil
	l.mu.Unlock()
	for partition, writes := range open {
		for len(writes) > 0 {
			n := min(len(writes), maxNotes)
			if err := l.k.submit(ctx, partition, aztables.TransactionTypeInsertReplace, writes[:n]); err != nil {
				for _, w := range writes {
					l.add(partition, w)
				}
				break
			}
			writes = writes[n:]
		}
	}
}
