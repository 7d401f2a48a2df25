// Package aztest is Azure Storage in memory, with faults, for tests of code that must survive them.
//
// A Service is the transport of the real SDK's clients:
//
//	s := aztest.New(nil)
//	client := s.BlockBlob("container", "blob")           // a *blockblob.Client whose transport is s
//	s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.2})
//
// It implements azcore's policy.Transporter without a socket and without a goroutine, so that the SDK and the code under
// test run inside a testing/synctest bubble, where leases expire and retries wait in no time. BlobHandler, QueueHandler,
// TableHandler and FileHandler serve the same state over HTTP to other processes, each service on a port of its own; package
// emulator does so for programs in any language.
//
// # Testing your own loop
//
// Run the operation once under each kind of fault, in a bubble, and then compare its result with the state of the service.
// Whatever the fault, an operation that reports success must have had its effect once, an operation that reports failure
// must have had none, and only one that reports an unknown outcome may have had either.
//
//	synctest.Test(t, func(t *testing.T) {
//		s := aztest.New(nil)
//		account := newAccount(s.BlockBlob("bank", "account"), 100)
//		s.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Writes, Count: 1, Delay: time.Second})
//		err := account.Withdraw(t.Context(), 30)
//		s.SetFaults()
//		time.Sleep(time.Hour) // delayed requests arrive
//		…
//	})
//
// The example EveryFault is such a test, of a loop that fails it. Then run many operations at once, with a Probability,
// over many seeds. The same Seed gives the same run, down to the last request, provided that no two goroutines send a
// request at the same instant of the bubble's time. A Latency that is drawn from the seed ensures that. Requests and Log
// show the cost.
//
// # Fidelity
//
// The Service behaves as the REST reference documents: ETags, conditional headers and their legal pairs, leases with all
// their states, copies, metadata, index tags, checksums, error codes. Where an emulator is known to differ, it follows the
// service; the suite in cmd/azconc/internal/conformance lists the differences. 9,595 requests that were recorded with real
// accounts are replayed against it, and all but 3 get the recorded response. The README lists the rules that come from
// these recordings.
//
// The clock is time.Now, which is fake in a bubble. A state that ends with time, such as a lease, is evaluated when a
// request needs it. A credential is required, and verified only with Options.VerifySignatures: shared keys of the four services,
// service SAS and account SAS, with the service's errors. There are no tokens of Microsoft Entra, and no user delegation.
//
// # Faults
//
// A Fault defines which requests fail, and how. The kinds cover the faults of a network and of a loaded service, above all
// a write that is applied and whose response is lost, and those of an intermediary. Faults are drawn from a seed, so the
// same program meets the same faults. Injector injects them into any transport, Proxy in front of a real service or an
// emulator.
//
// A caller that gives up before its request has arrived (Latency, Slow) has changed nothing. A caller that gives up after
// the request was applied has lost the response, as with the real service.
//
// # Limits
//
// One account for each Service. No versions, soft delete, immutability or encryption, no batches of blobs, no finding by tags and no
// queries of a blob's content: such a request is refused. Copies come from the same account. Metadata names are in lower case, because HTTP does not keep their
// case. Everything is in memory: content once, page blobs only where they are written. A Service is safe for concurrent use.
package aztest
