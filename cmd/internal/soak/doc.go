// Package soak keeps several processes at work for minutes, over a network that loses, delays, cuts and repeats requests,
// on an Azurite with its data on disk, while processes are killed, stopped past their leases and continued, and the
// service is restarted. Then it judges whether azconc kept its promises. It is a test alone, for Linux, whose signals stop and
// continue processes; scripts/soak runs it for as long as one likes.
//
// The processes use all of the libraries: Update on blobs and entities, Document, operation ids, Transact, Locker
// with fenced writes, RWLock, Semaphore, Producer and Consumer with markers and inbox, poison and Redrive, Once.
// Each writes a journal of what it began and what came of it. The judge reads the journals and the service.
//
// The seed decides what happens to whom and when, the order of each lane's operations, and which request of a line meets
// which fault. When requests overtake each other, and so which operation a fault hits, is the machine's choice: a seed
// repeats the weather, not every history.
//
// Azure Files are not part of it, because Azurite has none.
package soak
