// Package fence provides fencing tokens, which keep an earlier holder of a lock from writing.
//
// A lease cannot stop a holder that does not know that it lost the lease: it may have been paused, or its write may
// have been under way for a minute. The resource can stop it, if every write carries a number that grows with each
// holder, and the resource refuses a number smaller than the largest it has seen. That number is a Token. The check and
// the write must be one conditional request; the code that enforces a Token has to ensure that.
//
// A Token grows over the life of its lock, even if the lock is deleted in between:
//
//	next = max(previous + 1, service's Date in milliseconds)
//
// The Date header has whole seconds, and the +1 makes tokens within one second differ. Two rules keep the sequence
// growing if what stores it is deleted:
//
//   - A token is not given out before the service's clock has reached the token's own second. So every token that was
//     given out before the service's time t is smaller than the next whole second after t.
//   - A holder that finds no previous token, or one that may have been tampered with, takes the next whole second after
//     the last change of what stores it, and waits until the service's clock is there.
//
// Only the service's clock counts, so the holders' clocks do not matter. The remaining risk is a service whose clock
// goes backwards in a failover, or whose front ends disagree about the second. The stored previous token covers that
// for as long as it exists.
//
// Nothing here sends a request.
package fence
