// Package samba puts the locks of a real SMB server behind the real SDK for Azure Files, for tests:
//
//	s := samba.Start(t)          // starts an smbd, or skips the test
//	b := samba.NewBridge(t, s)   // FileREST over Samba's locks
//	c, err := s.Dial(t.Context()) // an SMB client that chooses its share modes
//	f := b.File("name")          // a *file.Client of the SDK
//
// Every request to the bridge opens the file once, with the access and the share mode that the service's documentation
// gives for the operation, and translates Samba's answer. With AZCONC_REQUIRE_SAMBA=1 a test fails where Samba is not
// installed; otherwise it is skipped. testdata/limits.md lists what the bridge cannot show.
package samba
