package protocol

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Write sends one request. It returns the ETag that the request produced, or the service's error unchanged.
type Write func(ctx context.Context) (azcore.ETag, error)

// State is the version of a resource without its value.
type State struct {
	Exists       bool
	ETag         azcore.ETag
	LastModified time.Time // by the service's clock; zero if not known
	Created      time.Time // when the resource was created, by the service's clock; zero if not known
	Lineage      Lineage
}
