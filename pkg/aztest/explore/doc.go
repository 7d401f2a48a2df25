// Package explore runs small concurrent programs on an in-memory Azure Storage in every order of their requests.
//
// A program is a few clients and a check. Each client runs in a goroutine of its own, with SDK clients whose requests
// wait at a gate. The explorer lets one request pass at a time, or does something to it, and waits until all clients
// wait again. It then starts over with another choice, depth first, until there is no other choice left:
//
//	report := explore.Run(t, func(w *explore.World) explore.Program {
//		target := func(c *explore.Client) blobs.Blob[int] { return blobs.NewJSON[int](c.BlockBlob("box", "n")) }
//		return explore.Program{
//			Clients: []func(ctx context.Context, c *explore.Client) error{increment(target), increment(target)},
//			Check:   func() error { … },
//		}
//	}, &explore.Options{Faults: 2})
//
// # Choices
//
// At each step the explorer chooses among
//
//	deliver        the request is applied and its response arrives
//	lose response  the request is applied; the connection breaks before the response arrives
//	lose request   the connection breaks before the request arrives
//	hold           the connection breaks; the request arrives later, at any time, or never
//	arrive         a request that was held back is applied now
//	twice          the request is applied, applied again at once, and the second response arrives
//	kill           the client is killed while the request is under way, which is held back
//	wait           time passes until another client sends a request
//
// Every choice but deliver, arrive and a wait without an alternative is a fault. Options.Faults bounds their number in a
// schedule.
//
// # Coverage
//
// Two requests on different resources by different clients commute. The explorer recognises a state that it has reached
// before by another order of such requests, and does not explore it again. Apart from that, it is exhaustive within its
// bounds: the number of faults, and the number of steps of a schedule. Time passes only when every client sleeps, or by
// the fault wait; when it passes, it passes until all clients have sent a request, ended, or slept for Options.Settle, so
// that the order in which they wake up is a choice, too.
//
// # Failures
//
// A schedule after which the check fails is reported as a sequence of steps, one a line, with the string that replays it:
// set Options.Replay to that string.
//
// A program must be deterministic but for the order of its requests. Random waits are harmless; a random decision is
// not, and is reported as an error when a schedule cannot be repeated.
//
// A Consumer of package idempotent selects at random between events that are ready together, so it cannot be explored: the
// storms of that package test it.
package explore
