// Package fence is the number that keeps a holder who is late from writing.
//
// A lease cannot stop a holder who does not know that he lost it: he may have been paused, or his write may have been
// under way for a minute. What can stop him is the resource, if every write carries a number that grows with each
// holder, and the resource refuses a number smaller than the largest it has seen. That number is a Token. Checking and
// writing must be one conditional request; whoever enforces a Token sees to that.
//
// A Token grows over the life of its lock, and over a deletion of the lock too:
//
//	next = max(previous + 1, service's Date in milliseconds)
//
// The Date header has whole seconds, and the +1 makes tokens differ within one. Two rules make the sequence survive a
// deletion of what stores it:
//
//   - A token is not given out before the service's clock has reached the token's own second. So whatever was given out
//     before the service's time t is smaller than the next whole second after t.
//   - Who finds no previous token, or one that may have been tampered with, takes the next whole second after the last
//     change of what stores it, and waits until the service is there.
//
// Only the service's clock counts, so the clocks of the holders do not matter. What remains is a service whose clock goes
// backwards by a failover, or whose front ends disagree about the second: the stored previous token covers that for as
// long as it is there.
//
// Nothing here sends a request.
package fence
