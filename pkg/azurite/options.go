package azurite

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/azconc/azconc/pkg/ptr"
)

// Options are the options of [Start].
type Options struct {
	// Dir is the folder of an installation as Install returns it. Defaults to what Install returns.
	Dir string
	// Accounts are the names of the server's accounts, 3 to 24 lower-case letters and digits each. Azurite reads them
	// when it starts, so none can be added later. ConnectionString returns the first one, and NewAccount the others.
	// DefaultAccount gets its well-known key, every other account a key of its own. Defaults to DefaultAccount alone.
	Accounts []string
	// Location is a folder for the data, which Stop leaves as it is. It is created if it is missing, and locked: a second
	// server on it is refused. Defaults to a temporary folder that Stop removes.
	Location string
	// BlobPort, QueuePort and TablePort are TCP ports on 127.0.0.1. UseDevelopmentStorage=true means 10000, 10001 and
	// 10002. Each defaults to one that is free.
	BlobPort, QueuePort, TablePort int
	// StartTimeout bounds the time from the start of the process to its first response; an installation is not part of
	// it. Negative means no bound. Defaults to 1 minute.
	StartTimeout time.Duration
	// Progress is called with a line for each step that takes time. Defaults to none.
	Progress io.Writer

	_ struct{}
}

func (o *Options) withDefaults() (Options, error) {
	out := ptr.Value(o)
	if len(out.Accounts) == 0 {
		out.Accounts = []string{DefaultAccount}
	}
	for i, name := range out.Accounts {
		if !accountName.MatchString(name) {
			return out, fmt.Errorf("Accounts[%d]: %q is not 3 to 24 lower-case letters and digits", i, name)
		}
		if slices.Contains(out.Accounts[:i], name) {
			return out, fmt.Errorf("Accounts[%d]: %q is there twice", i, name)
		}
	}
	for _, p := range []struct {
		field string
		port  int
	}{{"BlobPort", out.BlobPort}, {"QueuePort", out.QueuePort}, {"TablePort", out.TablePort}} {
		if p.port < 0 || p.port > 65535 {
			return out, fmt.Errorf("%s: %d is not between 0 and 65535", p.field, p.port)
		}
	}
	if out.Location != "" {
		var err error
		if out.Location, err = filepath.Abs(out.Location); err != nil {
			return out, fmt.Errorf("Location: %w", err)
		}
	}
	out.StartTimeout = cmp.Or(out.StartTimeout, time.Minute)
	out.Progress = cmp.Or[io.Writer](out.Progress, io.Discard)
	return out, nil
}
