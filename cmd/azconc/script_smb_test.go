package main

import (
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/azconc/azconc/pkg/aztest"
)

// smb is an SMB client of the in-memory service:
//
//	smb open reports/a.txt 1 write alone    opens it as handle 1, for writing, and shares nothing
//	smb close reports/a.txt 1
//	smb mark reports/a.txt                  for deletion, which takes place when the last handle closes
//	smb unmark reports/a.txt
func smb(ts *testscript.TestScript, _ bool, args []string) {
	share, path, _ := strings.Cut(args[1], "/")
	s := service(ts)
	switch args[0] {
	case "open":
		h := aztest.SMBHandle{ID: args[2], ClientName: "desk-" + args[2], ShareRead: true, ShareWrite: true, ShareDelete: true}
		for _, word := range args[3:] {
			h.Write = h.Write || word == "write"
			if word == "alone" {
				h.ShareRead, h.ShareWrite, h.ShareDelete = false, false, false
			}
		}
		if status := s.OpenSMB(share, path, h); status != aztest.SMBOpened {
			ts.Fatalf("%s", status)
		}
	case "close":
		s.CloseSMB(share, path, args[2])
	case "mark":
		s.MarkDeletedSMB(share, path, true)
	case "unmark":
		s.MarkDeletedSMB(share, path, false)
	default:
		ts.Fatalf("no such verb: %s", args[0])
	}
}
