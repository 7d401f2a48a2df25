// Package settings changes the metadata and access policies of containers and queues, and the properties of services.
//
// NewContainerMetadata and NewContainerACL make a container's settings targets for optimistic.Update. The service has no
// conditions for them, so azconc's writers take turns by a lease of the container.
//
// Queues and services have neither conditions nor leases for their settings: the last writer wins, and a change by
// another writer may be overwritten unnoticed. The targets for them say so in their names. Their doc comments say what
// can be proved nevertheless after a lost response.
package settings
