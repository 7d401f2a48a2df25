// Package queueservice is the Queue service of an account in memory: queues and messages.
//
// Route carries out one request, at once. Nothing here locks: package aztest calls a service with its lock held.
package queueservice
