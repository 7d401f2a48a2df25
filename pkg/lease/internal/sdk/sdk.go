// Package sdk converts between package lease and the types that the SDK's clients share.
package sdk

import (
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/ptr"
)

// The requests, as spans name them. The REST reference has one page for all of a resource's, such as "Lease Blob".
const (
	Acquire = "Acquire Lease"
	Renew   = "Renew Lease"
	Change  = "Change Lease"
	Release = "Release Lease"
	Break   = "Break Lease"
)

// Period returns a break period; nil if the lease is to end when it would have expired.
func Period(seconds int32) *int32 {
	if seconds == lease.Natural {
		return nil
	}
	return &seconds
}

// Result converts the response to a lease request.
func Result(id *string, etag *azcore.ETag, date *time.Time) lease.Result {
	return lease.Result{ID: ptr.Value(id), ETag: ptr.Value(etag), Date: ptr.Value(date)}
}

// Remaining converts x-ms-lease-time of a break: see lease.Resource.Break.
func Remaining(seconds *int32) time.Duration { return time.Duration(ptr.Value(seconds)) * time.Second }

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
