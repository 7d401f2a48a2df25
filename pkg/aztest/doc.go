// Package aztest is Azure Storage in memory, with faults: for testing code that must survive them.
//
// A Service stands behind the real SDK, which does not know the difference:
//
//	s := aztest.New(nil)
//	client := s.BlockBlob("container", "blob")           // a *blockblob.Client whose transport is s
//	s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.2})
//
// It implements azcore's policy.Transporter without a socket and without a goroutine, so that the SDK and the code under
// test run inside a testing/synctest bubble, where leases expire and retries wait in no time. As BlobHandler it serves
// the same state over loopback to other processes.
//
// # What it follows
//
// It answers as the service documents: ETags, conditional headers and their legal pairs, leases with all their states,
// metadata, index tags, error codes. Where an emulator is known to differ, it follows the service. Signatures are not
// verified, only demanded: a request without any credential is refused.
//
// # Faults
//
// A Fault says what goes wrong with which requests; the kinds cover what a network and a loaded service do, above all
// the write that is carried out and whose answer is lost. Faults are drawn from a seed, so the same program meets the
// same faults. Proxy brings the same faults to a real service or an emulator.
//
// # Limits
//
// One account. No versions, soft delete, immutability or encryption. Metadata names are kept in lower case, as they
// arrive after HTTP has passed them on. A Service is safe for concurrent use.
package aztest
