package markers

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/idempotent/internal/send"
)

// Writer records the outcomes of messages. Messages of one partition that are concluded at about the same time are
// recorded in one transaction: it starts when there are 32, or after 10 ms, but never before the previous one has ended. So a table
// that is slow receives fewer and larger transactions.
type Writer struct {
	table *Table
	run   func(func()) // runs a function in the background

	mu    sync.Mutex
	pages map[string]*page
	late  map[string][]Write // by partition
}

// NewWriter returns a Writer of a table. run runs a function in the background.
func NewWriter(table *Table, run func(func())) *Writer {
	return &Writer{table: table, run: run, pages: map[string]*page{}, late: map[string][]Write{}}
}

// page holds the markers to be written to one partition. One goroutine sends it for as long as it is not empty.
type page struct {
	open  []*note       // guarded by Writer.mu
	since time.Time     // when the first of open was added; guarded by Writer.mu
	full  chan struct{} // signals the sender that open has enough for a transaction
}

// note is one marker to be written.
type note struct {
	Write
	done chan error
}

const (
	maxDelay = 10 * time.Millisecond
	maxNotes = 32
	// maxWrites is the maximum number of entities of a transaction, and maxPage that of bytes of results, of which base64
	// takes a third (REST: "Performing entity group transactions", 4 MiB).
	maxWrites = 100
	maxPage   = 2 << 20
)

// Write returns when the marker is written. queued is called when it waits for its transaction.
func (n *Writer) Write(ctx context.Context, partition string, w Write, queued func()) error {
	one := &note{w, make(chan error, 1)}
	n.mu.Lock()
	p := n.pages[partition]
	if p == nil {
		p = &page{full: make(chan struct{}, 1)}
		n.pages[partition] = p
		n.run(func() { n.send(context.WithoutCancel(ctx), partition, p) })
	}
	if len(p.open) == 0 {
		p.since = time.Now()
	}
	if p.open = append(p.open, one); len(p.open) == maxNotes {
		select {
		case p.full <- struct{}{}:
		default:
		}
	}
	n.mu.Unlock()
	queued()
	select {
	case err := <-one.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// send writes a page, transaction by transaction, until it is empty.
func (n *Writer) send(ctx context.Context, partition string, p *page) {
	for {
		n.mu.Lock()
		if len(p.open) == 0 {
			delete(n.pages, partition)
			n.mu.Unlock()
			return
		}
		if left := maxDelay - time.Since(p.since); left > 0 && len(p.open) < maxNotes {
			n.mu.Unlock()
			select {
			case <-p.full:
			case <-time.After(left):
			}
			continue
		}
		batch := p.take()
		n.mu.Unlock()
		n.submit(ctx, partition, batch)
	}
}

// take removes what fits into a transaction. Writer.mu is held.
func (p *page) take() []*note {
	count, size := 0, 0
	for count < len(p.open) && count < maxWrites && size < maxPage {
		size += len(p.open[count].Marker.Result)
		count++
	}
	batch := p.open[:count:count]
	p.open, p.since = p.open[count:], time.Now()
	return batch
}

// submit writes one transaction.
func (n *Writer) submit(ctx context.Context, partition string, batch []*note) {
	ctx, cancel := context.WithTimeout(ctx, send.TryTimeout)
	defer cancel()
	writes := make([]Write, len(batch))
	for i, one := range batch {
		writes[i] = one.Write
	}
	err := n.table.Submit(ctx, partition, aztables.TransactionTypeInsertReplace, writes)
	for _, one := range batch {
		one.done <- err
	}
}

// Later keeps a marker for Flush: of a message that was handled and deleted while the table did not answer.
func (n *Writer) Later(partition string, writes ...Write) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.late[partition] = append(n.late[partition], writes...)
}

// Flush writes what was kept for later, up to the first failure; the others stay for the next Flush.
func (n *Writer) Flush(ctx context.Context) (err error) {
	n.mu.Lock()
	late := n.late
	n.late = map[string][]Write{}
	n.mu.Unlock()
	for partition, writes := range late {
		for batch := range slices.Chunk(writes, maxNotes) {
			if err == nil {
				err = n.table.Submit(ctx, partition, aztables.TransactionTypeInsertReplace, batch)
			}
			if err != nil {
				n.Later(partition, batch...)
			}
		}
	}
	return err
}
