// Package fence is the number that keeps a holder who is late from writing.
//
// A lease cannot stop a holder who does not know that he lost it: he may have been paused, or his write may have been
// under way for a minute. What can stop him is the resource, if every write carries a number that grows with each
// holder, and the resource refuses a number smaller than the largest it has seen. That number is a Token. Checking and
// writing must be one conditional request; whoever enforces a Token sees to that.
//
// A Token grows over the life of its lock, and over a deletion of the lock too, because it is never smaller than the
// service's clock in milliseconds:
//
//	next = max(previous + 1, service's Date in milliseconds)
//
// Only the service's clock counts, so the clocks of the holders do not matter. The Date header has whole seconds; what
// makes tokens differ within one is the +1. A lock that is deleted while its token is ahead of the clock (more than a
// thousand holders in a second), or an account whose clock goes backwards by a failover, would break the promise; the
// stored previous token covers the second as long as it is still there.
//
// Nothing here sends a request.
package fence
