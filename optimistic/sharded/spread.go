package sharded

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// Options tunes a Counter or a Document. The zero value is the default.
type Options struct {
	// Elapsed bounds the time that a change spends on the conflicts of one shard, and after which it tries no other. Defaults
	// to 30 s.
	Elapsed time.Duration

	optimistic.SendOptions

	_ struct{}
}

// spread is what a Counter and a Document have in common: the shards, under their names, and the one that this process
// changes.
type spread[P any, S stored[P]] struct {
	what     string // for errors: counter or document
	foreign  error  // the resource of the first shard's name is something else
	name     string
	at       func(name string) optimistic.Target[P]
	o        Options
	resource string

	mu     sync.Mutex // guards what follows
	shards int        // the largest number of shards that was seen; 0 if the first has not been read
	asked  time.Time  // when the number of shards was last read
	home   *home[P]   // nil before the first change
}

// stored is what is kept under each of the names.
type stored[P any] interface {
	*P
	layout() *Layout
	blank() bool // whether nothing has been put into the shard
}

// home is the shard that a process changes.
type home[P any] struct {
	shard int
	doc   *optimistic.Document[P]
}

func newSpread[P any, S stored[P]](what string, foreign error, name string, at func(string) optimistic.Target[P], opts *Options) (*spread[P, S], error) {
	if name == "" || len(name) > maxName {
		return nil, fmt.Errorf("%s: the name has %d bytes; it must have 1 to %d", what, len(name), maxName)
	}
	if at == nil {
		return nil, fmt.Errorf("%s: at is nil; give the function that makes the target of a name", what)
	}
	first := at(name)
	if first == nil {
		return nil, fmt.Errorf("%s: at(%q) is nil; it has to make a target", what, name)
	}
	c := &spread[P, S]{what: what, foreign: foreign, name: name, at: at, o: ptr.Value(opts)}
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

func (c *spread[P, S]) target(shard int) optimistic.Target[P] { return c.at(Name(c.name, shard)) }

// patience is how many conflicts a change bears on one shard. A crowd of 128 on one shard needs about 30.
const patience = 50

// open returns a document of a shard. Its value is written over without reading it again, however old it is: the ETag notices
// every change, and shards have no index tags.
func (c *spread[P, S]) open(shard int) (*home[P], error) {
	doc, err := optimistic.NewDocument(c.target(shard), &optimistic.DocumentOptions{
		MaxAge: math.MaxInt64,
		Update: optimistic.UpdateOptions{Attempts: patience, Elapsed: c.o.Elapsed, SendOptions: c.o.SendOptions},
	})
	return &home[P]{shard, doc}, err
}

// known notes the number of shards, which only grows.
func (c *spread[P, S]) known(shards int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shards, c.asked = max(c.shards, shards), time.Now()
}

// count returns the number of shards as last seen; 0 if none has been read.
func (c *spread[P, S]) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shards
}

// forget drops what is known: the shards are not what they were.
func (c *spread[P, S]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shards, c.home = 0, nil
}

// first reads the first part. The error is optimistic.ErrNotFound if there is none.
func (c *spread[P, S]) first(ctx context.Context, op string) (*P, error) {
	v, err := optimistic.Read(ctx, c.target(0), c.reading())
	if err != nil {
		return nil, err
	}
	return &v.Value, c.check(op, &v.Value)
}

func (c *spread[P, S]) reading() *optimistic.ReadOptions {
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

// check returns an error unless p is the first shard of what is in use.
func (c *spread[P, S]) check(op string, p *P) error {
	switch l := S(p).layout(); {
	case l.Deleting:
		return &DeletingError{Op: op, Resource: c.resource, what: c.what}
	case l.Shards < 1 || l.Shards > MaxShards:
		return fmt.Errorf("%s %s: %w: it names %d shards", op, c.resource, c.foreign, l.Shards)
	}
	return nil
}
