// Package blobservice is the Blob service of an account in memory: containers, blobs of all types, snapshots, copies, index tags and leases.
//
// Route carries out one request, at once. Nothing here locks: package aztest calls a service with its lock held.
package blobservice
