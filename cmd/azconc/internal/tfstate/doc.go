// Package tfstate keeps the state of Terraform or OpenTofu in a blob, in the form in which their azurerm backend keeps it, and
// serves it by the protocol of their http backend.
//
// # The lock
//
// A lock is a lease of the state's blob whose id is the id of the Terraform lock, and a description of the holder in the blob's
// metadata, under MetadataKey. The azurerm backend acquires infinite leases, which stay when a run dies. A Session acquires a
// lease of at most 60 s, and renews it until UNLOCK, until the run ends, or until it is lost. The azurerm backend sees both.
//
// The lease is that of the blob which is written, so its id is the fence: the service refuses a write under the id of a lease
// that has ended. Each write is also conditional on the version that the client has read or written last.
//
// # What may be left behind
//
// A run that dies leaves its lease, which ends within its duration, and the description, which says nothing once the lease has
// ended. A client that dies before its first write to a new state may leave an empty blob, which counts as no state.
package tfstate
