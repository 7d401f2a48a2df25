// Package aztest is Azure Storage in memory, with faults: for testing code that must survive them.
//
// A Service stands behind the real SDK, which does not know the difference:
//
//	s := aztest.New(nil)
//	client := s.BlockBlob("container", "blob")           // a *blockblob.Client whose transport is s
//	s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.2})
//
// It implements azcore's policy.Transporter without a socket and without a goroutine, so that the SDK and the code under
// test run inside a testing/synctest bubble, where leases expire and retries wait in no time. As BlobHandler and its like
// it serves the same state over loopback to other processes, each service on a port of its own.
//
// # Testing a loop of one's own
//
// Run the operation once under each kind of fault, in a bubble, and ask afterwards what the service holds. What has to be
// true whatever went wrong: an operation that says it succeeded has had its effect once, one that says it failed has had
// none, and only one that says it does not know may have either.
//
//	synctest.Test(t, func(t *testing.T) {
//		s := aztest.New(nil)
//		account := newAccount(s.BlockBlob("bank", "account"), 100)
//		s.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Writes, Count: 1, Delay: time.Second})
//		err := account.Withdraw(t.Context(), 30)
//		s.SetFaults()
//		time.Sleep(time.Hour) // whatever the network still holds back arrives
//		…
//	})
//
// The example EveryFault is such a test, of a loop that fails it. Then run many at once, with a Probability, over many
// seeds: the same Seed is the same run, down to the last request, as long as no two goroutines send at the same instant of
// the bubble's time, which a Latency drawn from the seed sees to. Requests and Log say what it cost.
//
// # What it follows
//
// It answers as the service documents: ETags, conditional headers and their legal pairs, leases with all their states,
// copies, metadata, index tags, checksums, error codes. Where an emulator is known to differ, it follows the service; the
// suite in the package conformance says where. 2,402 requests that were recorded with real accounts are replayed against it,
// and all but 6 are answered as they were then; the README says which rules come from there. Time is time.Now, a fake one in a bubble, and a state that time ends, such
// as a lease, is looked at only when somebody asks. Signatures are not verified, only demanded: a request without any
// credential is refused.
//
// # Faults
//
// A Fault says what goes wrong with which requests; the kinds cover what a network and a loaded service do, above all
// the write that is carried out and whose response is lost, and what an intermediary does to a response. Faults are drawn from a seed, so the same program meets the
// same faults. Injector brings them to any transport, Proxy to a real service or an emulator.
//
// A caller who gives up before a request has arrived (Latency, Slow) has changed nothing; one who gives up after it has
// been carried out has lost the answer. That, too, is how the service is.
//
// # Limits
//
// One account. No versions, soft delete, immutability or encryption, and no queries over tags. Copies come from the same
// account. Metadata names are kept in lower case, as they arrive after HTTP has passed them on. Everything is in memory:
// content once, page blobs only as far as they are written. A Service is safe for concurrent use.
package aztest
