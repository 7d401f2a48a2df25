// Package pessimistic implements leases, locks, elections and semaphores on Azure Storage. A holder learns in time that
// it no longer holds.
//
// A lease is the service's promise to grant a resource to nobody else for a while. Acquire acquires a lease on a blob
// or a container, renews it, and returns a context for the work that ends before the promise does:
//
//	err := pessimistic.Do(ctx, pessimistic.NewBlob(client), nil, func(ctx context.Context, l *pessimistic.Lease) error {
//		return work(ctx) // returns in time when the lease cannot be renewed
//	})
//
// # Promise
//
// Lease.Context ends before the service can grant the lease to another client. One gap remains: a request that was sent
// in time may arrive late. Only a fence stops such a request; see Hold.Fence.
//
// # Authority
//
// The service alone decides who holds a lease, and since when. The clocks of other machines are never consulted, and no
// process concludes from a stored time that another process's lease has expired. A holder uses its own clocks only to
// judge its own lease, and judges it pessimistically.
//
// # States and times
//
// D is the duration. t₀ is the moment just before the request that acquired or last renewed the lease was sent. Elapsed
// time is the larger of what the monotonic and the wall clock show, because the monotonic clock stops while the machine
// is suspended.
//
//	            renew every D/3              stop at t₀+2D/3        over at t₀+D
//	acquired ──────────────────────▶ sound ──────────────▶ in doubt ──────────────▶ over
//	                                  ▲   Context ends       │  Guard waits            Guard fails
//	                                  └──────────────────────┘
//	                                   a renewal of the same id
//
// Each renewal must be answered within D/6; after a failed renewal, the next one follows about a second later. With D =
// 30 s, the lease is renewed every 10 s, each renewal may take 5 s, and the work ends after 20 s without success, 10 s
// before another client can acquire the lease. Once Context has ended, it stays ended; Guard lets writes
// through again if a later renewal succeeds.
//
// A jump of the wall clock by more than a second makes Guard wait and triggers a renewal at once. Timers stop while the
// machine is suspended: Guard and Valid notice a jump at once, Context within a second of the machine's resuming.
//
// # Failures
//
// Only two things end a lease: its deadline, and a response saying that it is gone (held by another, broken, or
// deleted). Network errors, 5xx, 401 and 403 do not: while keys are being rotated, for example, the lease is still
// held. Every request has its own t₀ and its own timeout; the SDK's retries are off. Renewals do not wait for other
// requests of the lease, so a hanging request does not cost the lease. Calls that wait keep retrying transient faults for as
// long as they may wait; see AcquireOptions.Tries.
//
// A lease that another client has broken remains the holder's while the service reports it as breaking: Context ends
// when the next renewal is refused, and Valid and Remaining report how much time is left to stop. Meanwhile the lease's
// state is checked once a second.
//
// # Limits
//
//   - Breaking a lease with no grace period, or deleting the leased resource, lets other clients in before the holder
//     can know; it learns of it with its next renewal. Any client with write permission may break a lease. If the grace
//     period of a break is shorter than the rest of the lease, the holder notices its end up to a second late, once it
//     knows that the lease is being broken.
//   - A clock set forward by more than the deadline ends the work although the lease is still held. Some virtual
//     machines do not advance their wall clock while paused, until it is synchronized; such a pause goes unnoticed. A
//     fence covers that case too.
//   - If the network delays an acquire request until after the acquisition was abandoned and released, the request
//     locks the resource for one duration, or, if infinite, until the lease is broken. Infinite acquisitions are
//     therefore not cut off by ctx.
//   - The lease of a container guards only the container's deletion; otherwise it binds only clients that acquire it.
//
// # Waiting in order
//
// Those who wait for a named lock sign up in an append blob beside it, since the leased blob itself takes no write. The offset
// of what is appended is the number of a ticket, which the service gives out in order. The lock's record, stamped by each holder,
// says which number is next, how many are known and how long turns last.
//
//	            ticket n+1           next ≤ n: looks the more rarely the more are before it
//	held by another ────────▶ waits ─────────────────────────────────────────────────────────▶ acquires, stamps next = n+1
//	                            ▲                                                                     │
//	                            └── passed over twice, and nobody known: signs up again     release: are there tickets
//	                                                                                         the record does not know? stamps that
//
// A call that finds the lock free while others are known to wait signs up too. A waiter behind r others takes a lock that it
// has seen free, at one version, for as long as the first of them may sleep, and r - 1 times the interval at which it looks; its stamp
// forgets those whom it has passed over. A waiter that was passed over competes with the next; it signs up again if another has the turn
// after that. A waiter that gives up takes its ticket back by another line; the next release that looks for waiters leaves it out.
//
// No free lock is refused because others came before. They have it to themselves for three quarters of the time that the call may still
// wait (MaxWait, or the deadline of its context; 1 s with NoWait) at most, and never for more than 5 s; then the call takes it. If the lock
// becomes free at the end of MaxWait, the call takes it too, and those before it keep their places. Only a call that is cancelled before
// that has not taken the lock, and the next call meets the same tickets.
//
// A releaser that crashes before it stamps or releases leaves a lease that expires, and waiters that look. Waiters that were killed, a
// record that is foreign or forged, or a blob that is missing, full or of another type, cost the order and at most 5 s, once: the lease
// alone decides who holds the lock, and no promise above depends on tickets.
//
// The slots of a semaphore share the tickets beside slot 0. The record with the highest turn says which number is next, and
// while f slots are free, each of the next f waiters may take one.
//
// # Observing
//
// Hooks in the options, or of the Locker, receive a span for each operation that sends requests, named after it, such as
// "pessimistic.Lock", and below it one for each request, such as "Acquire Lease". Each renewal in the background is an
// operation "pessimistic.Renew" of its own, and each check of a lease that is being broken a "pessimistic.Verify". The
// context for the work derives from the caller's, not from that of the operation, which has ended by then.
//
// # Packages below this one
//
// Package shared has semaphores and readers–writer locks, and package election elects leaders; both are built from named
// locks, whose Hooks observe them, and so is package group, which shares the parts of a job among many processes. Package files has leases of Azure Files, and the operations that are only safe under
// them. Package manual sends the requests of a lease one at a time. The last two have spans of their own, such as
// "files.Update".
//
// # Cost
//
// Acquire and Release cost 1 request each, plus one renewal every D/3 and one HEAD request per poll while waiting. For named
// locks see Locker.Lock.
package pessimistic
