// Package settings changes the metadata and access policies of containers and queues, and the properties of services.
//
// NewContainerMetadata and NewContainerACL make a container's settings targets for optimistic.Update. The service has
// no conditions for them, so azconc writers take turns by a lease on the container.
//
// Queues and services have neither conditions nor leases for their settings: the last writer wins, and a change by
// another writer may be overwritten unnoticed. The constructors of these targets say so in their names. The doc
// comments say what can still be proved after a lost response.
package settings
