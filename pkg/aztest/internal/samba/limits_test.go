package samba

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"
)

// limit is a property of the service that the bridge cannot show, its substitute here, and a check that the limit still
// exists, if there is one: a limit that no longer exists has to be removed from the list.
type limit struct {
	what, instead string
	seen          func(t *testing.T, b *Bridge, c *Client, name string) string
}

var limits = []limit{
	{"a file whose deletion is pending is not listed", "Samba lists it, as Windows does; the bridge omits it", func(t *testing.T, b *Bridge, c *Client, name string) string {
		marked := open(t, c, name, deleter)
		if err := marked.MarkDeleted(true); err != nil {
			t.Fatal(err)
		}
		list, err := c.List("")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("Samba: %v, bridge: %v", slices.ContainsFunc(list, func(e Entry) bool { return e.Name == name }),
			slices.Contains(listed(t, b.Share().NewRootDirectoryClient()), name))
	}},
	{"Delete File fails for any handle", "Samba admits it next to a handle without access, and it would be pending; the bridge counts handles, which requires root", func(t *testing.T, b *Bridge, c *Client, name string) string {
		open(t, c, name, Open{Access: AccessAttributes, Share: ShareAll})
		b.countsHandles = false
		return "Samba: " + outcome(do(t.Context(), b.File(name), opDelete)) + ", then " + outcome(do(t.Context(), b.File(name), opGet))
	}},
	{"whether a pending deletion is SMBDeletePending or DeletePending", "the documentation has both; the bridge returns the first", func(t *testing.T, b *Bridge, c *Client, name string) string {
		marked := open(t, c, name, deleter)
		if err := marked.MarkDeleted(true); err != nil {
			t.Fatal(err)
		}
		return outcome(do(t.Context(), b.File(name), opGet))
	}},
	{"the error codes of leases of files", "they are not documented; the bridge uses those of blobs", func(t *testing.T, b *Bridge, c *Client, name string) string {
		if err := do(t.Context(), b.File(name), opLease); err != nil {
			t.Fatal(err)
		}
		return outcome(do(t.Context(), b.File(name), opLease)) + ", " + outcome(do(t.Context(), b.File(name), opPutRange))
	}},
	{"a lease holds while its holder writes", "the open that represents the lease is closed during the write; a client that opens the file meanwhile breaks the lease", nil},
	{"oplocks are broken, and ClientCacheFlushDelay", "the client requests none", nil},
	{"Force Close Handles closes one handle", "Samba disconnects the client from the share, with all its handles", nil},
	{"handles of leases, the names of clients", "the opens that represent leases are omitted; every client is localhost", nil},
	{"metadata, ETags and the ranges of a file", "the bridge keeps metadata itself; content types are not kept; a file is one range", func(t *testing.T, b *Bridge, c *Client, name string) string {
		kind := "text/plain"
		if _, err := b.File(name).SetHTTPHeaders(t.Context(), &file.SetHTTPHeadersOptions{HTTPHeaders: &file.HTTPHeaders{ContentType: &kind}}); err != nil {
			t.Fatal(err)
		}
		resp, err := b.File(name).GetProperties(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return kind + " is " + *resp.ContentType
	}},
	{"leases of shares, directories, snapshots, copies, Rename File", "the bridge does not have them", func(t *testing.T, b *Bridge, c *Client, name string) string {
		l, err := lease.NewShareClient(b.Share(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, onShare := l.Acquire(t.Context(), 15, nil)
		_, mkdir := b.Share().NewDirectoryClient("d").Create(t.Context(), nil)
		_, rename := b.File(name).Rename(t.Context(), "g", nil)
		return outcome(onShare) + ", " + outcome(mkdir) + ", " + outcome(rename)
	}},
	{"requests at the same time, and the service's own races", "the bridge handles one request at a time", nil},
	{"NFS, signatures, permissions, SMB 3 with encryption", "SMB 2.1 on 127.0.0.1, as one user; signatures are ignored", nil},
}

func TestWhatTheBridgeCannotShowIsListed(t *testing.T) {
	s := Start(t)
	var b strings.Builder
	b.WriteString("Limits of the bridge between FileREST and Samba. The last column shows the results here; nothing was run\n" +
		"against an account. Made by `go test ./pkg/aztest/internal/samba -run Listed -update`.\n\n" +
		"| of the service | here | seen |\n|---|---|---|\n")
	for i, l := range limits {
		seen := ""
		if l.seen != nil {
			name := fmt.Sprintf("f%d", i)
			place(t, s, name)
			seen = l.seen(t, NewBridge(t, s), dial(t, s), name)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", l.what, l.instead, seen)
	}
	golden(t, "limits.md", b.String())
}
