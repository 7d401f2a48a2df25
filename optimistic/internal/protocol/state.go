package protocol

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// State is the version of a resource without its value.
type State struct {
	Exists       bool
	ETag         azcore.ETag // empty if the resource does not exist
	LastModified time.Time   // by the service's clock; zero if not known
	Created      time.Time   // when the resource was created, by the service's clock; zero if not known
	Lineage      Lineage

	decided *decision // see Decided
	date    time.Time // of the response, see Dated
}
