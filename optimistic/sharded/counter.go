package sharded

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/ptr"
)

// Options tunes a Counter. The zero value is the default.
type Options struct {
	// Elapsed bounds the time that an addition spends on the conflicts of one shard, and after which it tries no other.
	// Defaults to 30 s.
	Elapsed time.Duration

	optimistic.SendOptions

	_ struct{}
}

// Counter is a number that many processes add to, in several shards. Each process adds to one shard, which it chooses at
// random, and changes the shard when others write it as well. Where there are fewer processes than shards, each comes to have
// one of its own, and then an Add costs 1 request.
//
// A Counter remembers its shard, what is in it, and the number of shards. It folds concurrent calls of Add into one write.
// It starts no goroutines that outlive a call, and does not need to be closed. It is safe for concurrent use.
type Counter struct {
	name     string
	at       At
	o        Options
	resource string

	mu   sync.Mutex // guards what follows
	seen layout     // of the counter, as last read; zero if it is not known
	own  *own       // nil before the first Add
}

// own is the shard that a process adds to.
type own struct {
	generation string
	shard      int
	doc        *optimistic.Document[Part]
}

// NewCounter opens the counter of a name. It sends nothing; the first call of a method finds out how many shards there are.
// It fails if the name, at or an option cannot be used.
func NewCounter(name string, at At, opts *Options) (*Counter, error) {
	if name == "" || len(name) > maxName {
		return nil, fmt.Errorf("counter: the name has %d bytes; it must have 1 to %d", len(name), maxName)
	}
	if at == nil {
		return nil, errors.New("counter: at is nil; give the function that makes the target of a name")
	}
	first := at(name)
	if first == nil {
		return nil, fmt.Errorf("counter: at(%q) is nil; it has to make a target", name)
	}
	behind, _ := sealed.Behind[Part](first)
	if err := sealed.NotNil("counter", fmt.Sprintf("at(%q)", name), behind); err != nil {
		return nil, err
	}
	c := &Counter{name: name, at: at, o: ptr.Value(opts), resource: first.Resource()}
	if c.o.Elapsed < 0 {
		return nil, fmt.Errorf("Options.Elapsed: %v is negative; 0 means the default of 30 s", c.o.Elapsed)
	}
	if c.o.Elapsed == 0 {
		c.o.Elapsed = 30 * time.Second
	}
	_, err := c.open(layout{}, 0) // says what is wrong with the options
	return c, err
}

// open returns one of the shards, to add to. Its value is written over without reading it again, however old it is: the ETag
// notices every change, and shards have no index tags.
func (c *Counter) open(l layout, shard int) (*own, error) {
	doc, err := optimistic.NewDocument(c.target(l.generation, shard), &optimistic.DocumentOptions{MaxAge: math.MaxInt64, Update: c.updating()})
	return &own{l.generation, shard, doc}, err
}

// attempts is how many conflicts an addition bears on one shard. 128 writers of one shard need about 30.
const attempts = 50

func (c *Counter) updating() optimistic.UpdateOptions {
	return optimistic.UpdateOptions{Attempts: attempts, Elapsed: c.o.Elapsed, SendOptions: c.o.SendOptions}
}

func (c *Counter) reading() *optimistic.ReadOptions {
	return &optimistic.ReadOptions{SendOptions: c.o.SendOptions}
}

// know notes a layout that was read.
func (c *Counter) know(l layout) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = l
}

// known returns the layout as last seen.
func (c *Counter) known() layout {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

// forget drops what is known: the shards are not what they were.
func (c *Counter) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen, c.own = layout{}, nil
}

// first reads the first shard. The error is optimistic.ErrNotFound if there is none.
func (c *Counter) first(ctx context.Context, op string) (layout, error) {
	v, err := optimistic.Read(ctx, c.target("", 0), c.reading())
	if err != nil {
		return layout{}, err
	}
	l, err := c.layoutOf(op, &v.Value)
	if err == nil {
		c.know(l)
	}
	return l, err
}
