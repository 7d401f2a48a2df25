// Package shared limits how many processes hold something at the same time: a Semaphore admits n, and an RWLock admits
// many readers or one writer. Both are built from the named locks of a pessimistic.Locker, with their promises and limits.
package shared
