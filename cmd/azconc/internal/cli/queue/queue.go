// Package queue has the verbs of azconc queue.
package queue

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/idempotent"
)

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("queue", "Send, receive and consume messages",
		newCreateCmd(f),
		newDeleteCmd(f),
		newListCmd(f),
		newShowCmd(f),
		newSendCmd(f),
		newConsumeCmd(f),
		newReceiveCmd(f),
		newPeekCmd(f),
		newExtendCmd(f),
		newDeleteMessageCmd(f),
		newRedriveCmd(f),
		newClearCmd(f),
		newGCCmd(f),
		newMetadataCmd(f),
		newACLCmd(f),
		newPropertiesCmd(f),
	)
}

// ParseName reads the name of a queue, for which the rules are a container's, less the special ones (REST: "Naming
// queues and metadata").
func ParseName(arg string) (string, error) {
	arg = show.Unquoted(arg)
	if err := ref.ValidContainer(arg); err != nil || strings.HasPrefix(arg, "$") {
		return "", fail.WithHint(fail.Usagef("%q is not a queue's name", arg), ref.NameRule)
	}
	return arg, nil
}

// parseTable reads the name of a table.
func parseTable(arg string) (string, error) {
	t, err := ref.ParseTable(arg, 1)
	return t.Table, err
}

// noClient is for verbs whose flags say which services are needed.
func noClient(string) (struct{}, error) { return struct{}{}, nil }

func parseInbox(arg string) (ref.Table, error) { return ref.ParseTable(arg, 2) }

func parseQueues(list string) (names []string, err error) {
	for name := range strings.SplitSeq(list, ",") {
		if name, err = ParseName(name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// named adds a flag that names something, whose errors name the flag.
func named[T any](set *pflag.FlagSet, to *T, name, usage string, parse func(string) (T, error)) {
	flags.Text(set, to, name, usage, func(text string) (T, error) {
		v, err := parse(text)
		if err != nil {
			err = fmt.Errorf("--%s: %w", name, err)
		}
		return v, err
	})
}

// CheckFlag checks the name of a queue that a flag has.
func CheckFlag(flag, name string) error {
	if _, err := ParseName(name); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// NameFlag adds a flag that names a queue.
func NameFlag(set *pflag.FlagSet, to *string, name, usage string) {
	named(set, to, name, usage, ParseName)
}

// TableFlag adds a flag that names a table.
func TableFlag(set *pflag.FlagSet, to *string, name, usage string) {
	named(set, to, name, usage, parseTable)
}

// openMarkers returns the markers in a table.
func openMarkers(f *cli.Factory, table string) (*idempotent.Markers, error) {
	client, err := f.Table(ref.Table{Table: table})
	if err != nil {
		return nil, err
	}
	return idempotent.NewMarkers(client, nil)
}

func openInbox(f *cli.Factory, at ref.Table, outbox map[string]*idempotent.Producer) (*idempotent.Inbox, error) {
	client, err := f.Table(at)
	if err != nil {
		return nil, err
	}
	return idempotent.NewInbox(client, &idempotent.InboxOptions{Outbox: outbox})
}

// maxClaimed is the longest body that is stored beside its message.
const maxClaimed = 64 << 20

// openClaims returns the ClaimCheck on a container, or nil if none is given. queues are others whose bodies may be read.
func openClaims(f *cli.Factory, in ref.Blob, queues ...string) (*idempotent.ClaimCheck, error) {
	if in.Container == "" {
		return nil, nil
	}
	c, err := f.Container(in)
	if err != nil {
		return nil, err
	}
	return idempotent.NewClaimCheck(c, &idempotent.ClaimCheckOptions{MaxBody: maxClaimed, Queues: queues})
}
