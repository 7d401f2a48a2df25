// Package samba connects the real SDK for Azure Files to the locks of a real SMB server, for tests:
//
//	s := samba.Start(t)          // an smbd; without Samba the test is skipped
//	b := samba.NewBridge(t, s)   // FileREST on top of Samba
//	c, err := s.Dial(t.Context()) // an SMB client with any share mode
//	f := b.File("name")          // a *file.Client of the SDK
//
// Every request to the bridge opens the file once, with the access and the share mode that the service's documentation
// defines for the operation, and gets Samba's answer as the service would word it. With AZCONC_REQUIRE_SAMBA=1 a test
// fails if Samba is not available. testdata/limits.md lists what the bridge cannot show.
package samba
