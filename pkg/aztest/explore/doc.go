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
//	twice          the request is applied, and stays where it is: it arrives a second time, at once or after requests of
//	               others, and only the response to the second arrives
//	kill           the client is killed while the request is under way, which is held back
//	wait           time passes until another client sends a request, while requests are under way
//
// Every choice but deliver, arrive and a wait without an alternative is a fault. Options.Faults bounds their number in a
// schedule. A request that changes nothing is only delivered or lost. A lost request is a held one that never arrives, so
// that LoseRequest adds nothing to Hold for requests that do change something.
//
// # Coverage
//
// Two requests commute if they are by different clients and on different resources, or if the service has changed nothing
// for at least one of them: a read, a refused write, a receive from an empty queue. The explorer recognises a state that
// it has reached before by another order of such requests, and does not explore it again. Apart from that, it is
// exhaustive within its bounds: the number of faults, of preemptions, and of steps of a schedule. Report.Pruned counts
// the choices that lead to known states; most of them need not even be run.
//
// Time passes only when every client sleeps, or by the fault wait. It then passes until a request arrives, and for 2 s more,
// so that the order of clients that wake up at about the same time is a choice, too. A state is what has
// happened, without the moments at which it did: the explorer takes it for known whatever waits have led to it.
//
// # Failures
//
// A schedule after which the check fails is reported as a sequence of steps, one a line, with the string that replays it:
// set Options.Replay to that string.
//
// # Determinism
//
// A program should be deterministic but for the order of its requests, because a schedule is reached by running the
// program again. The explorer finds a choice again by the client, the operation, the resource and how often the client
// has sent that. Ids that clients draw may be part of a resource's name. Waits that azconc draws at random are the same in
// every run: a client's context has the one number of Options.Random that is its own, by retry.WithRandom. Other random
// waits are harmless if they are shorter than 2 s, or longer by more than that. If a choice is not offered again, because
// the program has decided otherwise at random or its goroutines have raced, the run is repeated up to 40 times; what the
// other runs offer is explored, too. A choice that still is not offered is counted in Report.Diverged, and the report is
// not complete.
//
// Goroutines of one client race less with GOMAXPROCS=1, which also makes a schedule faster. The race detector makes them
// race more, and schedules ten times as slow: bound their number by Options.Schedules there.
package explore
