// Package sdk makes a lease.Resource of functions that call the SDK's clients.
package sdk

import (
	"context"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
)

// Calls send one request each, through a client of type C, which has the lease id. The SDK's lease clients store an id that
// their change of it writes without a lock, so Under makes one for each request.
type Calls[C any] struct {
	URL     string
	Support lease.Support
	Under   func(id *string) (C, error) // fails only if it has to make an id

	Acquire func(ctx context.Context, client C, seconds int32, c lease.Conditions) (lease.Result, error)
	Renew   func(ctx context.Context, client C, c lease.Conditions) (lease.Result, error) // nil: the resource has no renewal
	Change  func(ctx context.Context, client C, to string, c lease.Conditions) (lease.Result, error)
	Release func(ctx context.Context, client C, c lease.Conditions) error
	Break   func(ctx context.Context, client C, period *int32, c lease.Conditions) (left *int32, err error)

	Look     func(ctx context.Context, id *string) (lease.Observation, error)
	LookName string // of that request, in spans
}

// Resource returns the resource.
func (c Calls[C]) Resource() lease.Resource {
	return &adapter[C]{calls: c, path: resource.Path(c.URL)}
}

type adapter[C any] struct {
	lease.Resource // nil: for the method that seals it
	calls          Calls[C]
	path           string
}

// secondsOf converts what the protocol has in seconds. Infinite and Natural are negative there too.
func secondsOf(d time.Duration) int32 {
	if d < 0 {
		return -1
	}
	return int32(d / time.Second)
}

func (a *adapter[C]) String() string { return a.path }

func (a *adapter[C]) Supports() lease.Support { return a.calls.Support }

// send sends a request about the lease with an id. The REST reference has one page for all of them, such as "Lease Blob".
func (a *adapter[C]) send(ctx context.Context, verb, id string, request func(context.Context, C) (lease.Result, error)) (lease.Result, error) {
	client, err := a.calls.Under(&id)
	if err != nil {
		return lease.Result{}, err
	}
	return wire.Request(ctx, verb+" Lease", func(ctx context.Context) (lease.Result, error) { return request(ctx, client) })
}

func (a *adapter[C]) Acquire(ctx context.Context, id string, d time.Duration, c lease.Conditions) (lease.Result, error) {
	return a.send(ctx, "Acquire", id, func(ctx context.Context, client C) (lease.Result, error) {
		return a.calls.Acquire(ctx, client, secondsOf(d), c)
	})
}

// Renew reads the properties under the lease id if the resource has no renewal: the service refuses that if the lease is not held.
func (a *adapter[C]) Renew(ctx context.Context, id string, c lease.Conditions) (lease.Result, error) {
	if a.calls.Renew == nil {
		seen, err := a.Look(ctx, id)
		return lease.Result{ID: id, ETag: seen.ETag, Date: seen.Date}, err
	}
	return a.send(ctx, "Renew", id, func(ctx context.Context, client C) (lease.Result, error) { return a.calls.Renew(ctx, client, c) })
}

func (a *adapter[C]) Change(ctx context.Context, id, to string, c lease.Conditions) (lease.Result, error) {
	return a.send(ctx, "Change", id, func(ctx context.Context, client C) (lease.Result, error) {
		return a.calls.Change(ctx, client, to, c)
	})
}

func (a *adapter[C]) Release(ctx context.Context, id string, c lease.Conditions) error {
	_, err := a.send(ctx, "Release", id, func(ctx context.Context, client C) (lease.Result, error) {
		return lease.Result{}, a.calls.Release(ctx, client, c)
	})
	return err
}

func (a *adapter[C]) Break(ctx context.Context, after time.Duration, c lease.Conditions) (left time.Duration, err error) {
	var period *int32
	if after != lease.Natural {
		period = new(secondsOf(after))
	}
	_, err = a.send(ctx, "Break", "", func(ctx context.Context, client C) (lease.Result, error) {
		seconds, err := a.calls.Break(ctx, client, period, c)
		left = time.Duration(ptr.Value(seconds)) * time.Second
		return lease.Result{}, err
	})
	return left, err
}

func (a *adapter[C]) Look(ctx context.Context, id string) (lease.Observation, error) {
	return wire.Request(ctx, a.calls.LookName, func(ctx context.Context) (lease.Observation, error) {
		return a.calls.Look(ctx, ptr.Optional(id))
	})
}

// Result converts the response to a lease request.
func Result(id *string, etag *azcore.ETag, date *time.Time) lease.Result {
	return lease.Result{ID: ptr.Value(id), ETag: ptr.Value(etag), Date: ptr.Value(date)}
}

// Observed converts a resource's properties.
func Observed[S, T ~string](state *S, term *T, etag *azcore.ETag, modified *time.Time, metadata map[string]*string, date *time.Time) lease.Observation {
	seen := lease.Observation{
		State: lease.State(ptr.Value(state)), Term: lease.Term(ptr.Value(term)), ETag: ptr.Value(etag), Modified: ptr.Value(modified),
		Metadata: make(map[string]string, len(metadata)), Date: ptr.Value(date),
	}
	for name, value := range metadata {
		seen.Metadata[strings.ToLower(name)] = ptr.Value(value) // HTTP may have changed the case
	}
	return seen
}
