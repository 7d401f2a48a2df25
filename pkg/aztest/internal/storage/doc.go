// Package storage is what the services of an account have in common: requests and responses of the REST interface, leases,
// metadata, ranges, stored access policies, and the account's own state. The packages of the services build on it.
//
// Nothing here locks: package aztest calls a service with its lock held.
package storage
