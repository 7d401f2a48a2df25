package files

import (
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/lease/filelease"
)

// Share returns a share of Azure Files as a Resource. Its lease is like a container's: 15 s to 60 s or infinite,
// renewed, and it guards only the share's deletion: anybody may still write its files (REST: "Lease Share").
func Share(client *share.Client) pessimistic.Resource { return filelease.Share(client) }
