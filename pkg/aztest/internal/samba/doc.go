// Package samba puts the locks of a real SMB server behind the real SDK for Azure Files, for tests:
//
//	s := samba.Start(t)          // an smbd, or a test that is skipped
//	b := samba.NewBridge(t, s)   // FileREST, for which Samba decides
//	c, err := s.Dial(t.Context()) // a client of SMB that chooses what it shares
//	f := b.File("name")          // a *file.Client of the SDK
//
// Every request to the bridge opens the file once, with the access and the share mode that the service's documentation
// gives for the operation, and has Samba's answer in the service's words. With AZCONC_REQUIRE_SAMBA=1 a test fails that
// cannot have Samba. What the bridge cannot show is listed in testdata/limits.md.
package samba
