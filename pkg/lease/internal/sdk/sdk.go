// Package sdk converts between package lease and the types that the SDK's clients share.
package sdk

import (
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/lease"
)

// Value returns what p points to, or the zero value.
func Value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Optional returns nil for the zero value: an emulator treats a header without a value as if it had not been sent.
func Optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// Period returns a break period; nil if the lease is to end when it would have expired.
func Period(seconds int32) *int32 {
	if seconds == lease.Natural {
		return nil
	}
	return &seconds
}

// Reply converts the response to a lease request.
func Reply(id *string, etag *azcore.ETag, date *time.Time) lease.Reply {
	return lease.Reply{ID: Value(id), ETag: Value(etag), Date: Value(date)}
}

// Remaining converts the time that a broken lease still lasts.
func Remaining(seconds *int32) time.Duration { return time.Duration(Value(seconds)) * time.Second }

// Observed converts a resource's properties.
func Observed[S, T ~string](state *S, term *T, etag *azcore.ETag, modified *time.Time, metadata map[string]*string, date *time.Time) lease.Observation {
	seen := lease.Observation{
		State: lease.State(Value(state)), Term: lease.Term(Value(term)), ETag: Value(etag), Modified: Value(modified),
		Metadata: make(map[string]string, len(metadata)), Date: Value(date),
	}
	for name, value := range metadata {
		seen.Metadata[strings.ToLower(name)] = Value(value) // HTTP may have changed the case
	}
	return seen
}
