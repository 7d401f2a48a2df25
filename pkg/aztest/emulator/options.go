package emulator

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/ptr"
)

// Options are the options of [Start].
type Options struct {
	// Accounts are the names of the accounts, 3 to 24 lower-case letters and digits each. aztest.Account gets its
	// well-known key, every other account a key of its own. Defaults to aztest.Account alone.
	Accounts []string
	// BlobPort, QueuePort, TablePort and FilePort are TCP ports on 127.0.0.1. UseDevelopmentStorage=true means 10000,
	// 10001 and 10002 for the first three. Each defaults to one that is free.
	BlobPort, QueuePort, TablePort, FilePort int
	// Faults are what goes wrong. ParseFaults reads them from a text. Defaults to nothing.
	Faults []aztest.Fault
	// Seed selects the requests that meet a fault. Defaults to 0.
	Seed uint64
	// MaxMemory is the size of the heap, in bytes, beyond which requests with a body are refused: 507 InsufficientStorage. It is that
	// of the whole process, with all accounts. What was deleted makes room again. Defaults to 0: no limit.
	MaxMemory int64
	// Log gets a line when the server itself fails at a request. Defaults to none.
	Log io.Writer

	_ struct{}
}

func (o *Options) withDefaults() (Options, error) {
	out := ptr.Value(o)
	if len(out.Accounts) == 0 {
		out.Accounts = []string{aztest.Account}
	}
	for i, name := range out.Accounts {
		if !accountName(name) {
			return out, fmt.Errorf("Accounts[%d]: %q is not 3 to 24 lower-case letters and digits", i, name)
		}
		if slices.Contains(out.Accounts[:i], name) {
			return out, fmt.Errorf("Accounts[%d]: %q is there twice", i, name)
		}
	}
	for _, p := range []struct {
		field string
		port  int
	}{{"BlobPort", out.BlobPort}, {"QueuePort", out.QueuePort}, {"TablePort", out.TablePort}, {"FilePort", out.FilePort}} {
		if p.port < 0 || p.port > 65535 {
			return out, fmt.Errorf("%s: %d is not between 0 and 65535", p.field, p.port)
		}
	}
	if out.MaxMemory < 0 {
		return out, fmt.Errorf("MaxMemory: %d is negative", out.MaxMemory)
	}
	if out.Log == nil {
		out.Log = io.Discard
	}
	return out, nil
}

// accountName reports whether a text is a name that the service gives to accounts.
func accountName(name string) bool {
	return len(name) >= 3 && len(name) <= 24 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}
