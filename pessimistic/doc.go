// Package pessimistic holds things in Azure Storage, and knows when it no longer does.
//
// A lease is the service's promise to give something to nobody else for a while. Acquire gets one on a blob or a
// container, renews it, and hangs the work off a context that ends before the promise does:
//
//	err := pessimistic.Do(ctx, pessimistic.Blob(client), nil, func(ctx context.Context, l *pessimistic.Lease) error {
//		return work(ctx) // ends in time when the lease cannot be renewed
//	})
//
// # Promise
//
// Work done under Lease.Context has been told to stop before the service could give the lease to anybody else. What
// remains is a request that was sent in time and arrives late; only a fence stops that, see below.
//
// # Authority
//
// The service alone knows who holds a lease, and since when. Clocks of other machines are never looked at, and nobody
// decides by a stored time that somebody else's lease must have expired. The holder's own clocks serve to be pessimistic
// about his own lease only.
//
// # States and times
//
// D is the duration, t₀ the moment before the request was sent that acquired or last renewed the lease. Elapsed time is
// the larger of what the monotonic and the wall clock say: the former stands still in a suspended machine.
//
//	            renew every D/3              stop at t₀+2D/3        over at t₀+D
//	acquired ──────────────────────▶ open ───────────────▶ doubt ─────────────────▶ closed
//	                                  ▲   Context ends       │  Guard waits            Guard fails
//	                                  └──────────────────────┘
//	                                   a renewal of the same id
//
// Each renewal has D/6 to be answered; after one that fails the next comes about a second later. With D = 30 s: renewals
// every 10 s, 5 s each, work ends after 20 s without success, 10 s before anybody else can come in. Once ended, Context
// stays ended; the write gate (Guard) opens again when a renewal succeeds after all.
//
// A jump of the wall clock by more than a second closes the gate and renews at once. Timers stand still with a suspended
// machine: Guard and Valid see a jump at once, Context up to a second after waking up.
//
// # Failures
//
// Only two things end a lease: the deadline, and an answer that says so (another holder, broken, deleted). Errors of the
// network, 5xx, 401 and 403 do not: the lease is still there while keys are changed. Every request has its own t₀, its
// own timeout and no retry but ours. Renewals wait for no other request of the lease, so one that hangs does not cost it.
// Acquiring is repeated with the same id, so a response that was lost does no harm; an acquisition that fails or is
// cancelled gives back what it may have got, on a context of its own.
//
// Calls that wait ride out transient faults for as long as they may wait: see AcquireOptions.Tries. A release is tried for
// ten seconds.
//
// A lease that another client has broken is still the holder's while the service says that it is breaking: Context ends
// when the next renewal is refused, and Valid and Remaining say how much time is left for stopping. The service is asked
// once a second whether it still is.
//
// # Limits
//
//   - Breaking a lease with no grace, or deleting what is leased, lets others in before the holder can know: he finds out
//     with his next renewal. Anybody who may write may break. A break whose grace is shorter than the rest of the lease is
//     noticed up to a second after its end, once the holder knows that the lease is being broken.
//   - A clock set forward by more than the deadline ends the work, although the lease is still there. A machine whose wall
//     clock does not advance while it is suspended (some paused virtual machines, until they are synchronised) is not
//     noticed; the fence is the answer to that too.
//   - An acquire request that the network holds back until after it was given up and released again locks for one
//     duration; an infinite one until somebody breaks it. Infinite acquisitions are therefore not cut off by ctx.
//   - Leases of containers guard the container's deletion, and otherwise bind only those who ask for them.
//
// # Files
//
// FileREST has no conditions: the last writer wins. What there is are leases of files, which are infinite, not renewed,
// and respected by SMB clients too. UpdateFile and UploadFile write under one; DownloadFile reads ranges of one version;
// DeleteFile deletes a file once, and takes a deletion that an SMB client has begun for neither success nor absence. What
// SMB clients have open is an *InUseError, which names them; WaitUnlocked waits for it to pass, Handles lists and
// ForceClose closes it. BreakStale ends the lease of a holder who is not heard of any more.
//
// What an SMB client keeps in its cache is not seen through REST until it is flushed. None of this has been run on a
// real account: pkg/aztest/testdata/files.md lists what only an account can answer.
//
// # Cost
//
// Acquire 1 request, Release 1, one renewal every D/3, one HEAD per look while waiting.
package pessimistic
