package sharded

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// Options tunes a Counter. The zero value is the default.
type Options struct {
	// Elapsed bounds the time that Add spends on the conflicts of one shard, and after which it tries no other. Defaults to
	// 30 s.
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

	mu     sync.Mutex // guards what follows
	shards int        // the largest number of shards that was seen; 0 if the counter has not been read
	asked  time.Time  // when the number of shards was last read
	home   *home      // nil before the first Add
}

// home is the shard that a Counter adds to.
type home struct {
	shard int
	doc   *optimistic.Document[Part]
}

// NewCounter opens the counter of a name. It sends nothing; the first call of a method finds out how many shards there are.
// It fails if the name, at or an option cannot be used.
func NewCounter(name string, at At, opts *Options) (*Counter, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if at == nil {
		return nil, errors.New("counter: at is nil; give the function that makes the target of a name")
	}
	first := at(name)
	if first == nil {
		return nil, fmt.Errorf("counter: at(%q) is nil; it has to make a target", name)
	}
	c := &Counter{name: name, at: at, o: ptr.Value(opts)}
	if c.o.Elapsed < 0 {
		return nil, fmt.Errorf("Options.Elapsed: %v is negative; 0 means the default of 30 s", c.o.Elapsed)
	}
	if c.o.Elapsed == 0 {
		c.o.Elapsed = 30 * time.Second
	}
	if _, err := c.open(0); err != nil { // says what is wrong with the options
		return nil, err
	}
	c.resource = first.Resource()
	return c, nil
}

// Resource names the counter by the path of its first shard, never by URL.
func (c *Counter) Resource() string { return c.resource }

func (c *Counter) target(shard int) optimistic.Target[Part] { return c.at(Name(c.name, shard)) }

// patience is how many conflicts Add bears on one shard. A crowd of 128 on one shard needs about 30.
const patience = 50

// open returns a document of a shard. Its value is written over without reading it again, however old it is: the ETag notices
// every change, and shards have no index tags.
func (c *Counter) open(shard int) (*home, error) {
	doc, err := optimistic.NewDocument(c.target(shard), &optimistic.DocumentOptions{
		MaxAge: math.MaxInt64,
		Update: optimistic.UpdateOptions{Attempts: patience, Elapsed: c.o.Elapsed, SendOptions: c.o.SendOptions},
	})
	return &home{shard, doc}, err
}

// known notes the number of shards, which only grows.
func (c *Counter) known(shards int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shards, c.asked = max(c.shards, shards), time.Now()
}

// count returns the number of shards as last seen; 0 if the counter has not been read.
func (c *Counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shards
}

// forget drops what is known: the counter is not what it was.
func (c *Counter) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shards, c.home = 0, nil
}

// first reads the first part. The error is optimistic.ErrNotFound if there is no counter.
func (c *Counter) first(ctx context.Context, op string) (Part, error) {
	v, err := optimistic.Read(ctx, c.target(0), c.reading())
	if err != nil {
		return Part{}, err
	}
	return v.Value, c.check(op, v.Value)
}

func (c *Counter) reading() *optimistic.ReadOptions {
	return &optimistic.ReadOptions{SendOptions: c.o.SendOptions}
}

// pick returns a shard at random, other than one of them unless there is no other.
func pick(ctx context.Context, shards, other int) int {
	if shards < 2 {
		return 0
	}
	if other < 0 || other >= shards {
		return int(retry.Random(ctx)*float64(shards)) % shards
	}
	return (other + 1 + int(retry.Random(ctx)*float64(shards-1))%(shards-1)) % shards
}
