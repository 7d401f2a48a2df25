// Package tableservice is the Table service of an account in memory: tables, entities, queries and entity group transactions.
//
// Route carries out one request, at once. Nothing here locks: package aztest calls a service with its lock held.
package tableservice
