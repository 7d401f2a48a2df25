// Package queue has the verbs of azconc queue.
package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/settings"
	"github.com/azconc/azconc/pkg/azerr"
)

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("queue", "Send, receive and consume messages",
		newCreateCmd(f),
		newDeleteCmd(f),
		newListCmd(f),
		newShowCmd(f),
		newSendCmd(f),
		consumeVerb().Command(f),
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

// parseQueue reads the name of a queue, for which the rules are a container's, less the special ones (REST: "Naming
// queues and metadata").
func parseQueue(arg string) (string, error) {
	if err := ref.ValidContainer(arg); err != nil || strings.HasPrefix(arg, "$") {
		return "", fail.WithHint(fail.Usagef("%q is not a queue's name", arg),
			"a name has 3 to 63 lower-case letters, digits and single hyphens, and begins and ends with a letter or digit")
	}
	return arg, nil
}

// CheckQueue looks at the name of a queue that a flag may name.
func CheckQueue(flag, name string) error {
	if _, err := parseQueue(name); name != "" && err != nil {
		return fail.WithHint(fail.Usagef("%s %v", flag, err), fail.HintOf(err))
	}
	return nil
}

// CheckTable looks at the name of a table that a flag may name.
func CheckTable(flag, name string) error {
	if name != "" && !ref.TableName.MatchString(name) {
		return fail.WithHint(fail.Usagef("%s %q is not a table's name", flag, name), "a name is 3 to 63 letters and digits, a letter first")
	}
	return nil
}

// openMarkers returns the markers in a table.
func openMarkers(f *cli.Factory, table string) (*idempotent.Markers, error) {
	tables, err := f.TableService()
	if err != nil {
		return nil, err
	}
	return idempotent.NewMarkers(tables.NewClient(table), nil)
}

// createTimeout bounds the creation of a queue, which the Consumer repeats if there is no response.
const createTimeout = 10 * time.Second

// createQueue creates a queue if it is missing, and says so. If it was just deleted, or the service does not answer, the Consumer
// creates it later.
func createQueue(f *cli.Factory, ctx context.Context, queue *azqueue.QueueClient, name string) error {
	asking, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	r, err := settings.CreateQueue(asking, queue, nil)
	if r.Created {
		f.Notef("created queue %s", name)
	}
	out := azerr.Classify(err)
	if errors.Is(err, optimistic.ErrExists) || out.Code == "QueueBeingDeleted" || out.Transient() || out.Ambiguous() || asking.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return endOf(ctx, err)
}

// endOf returns the end of ctx as the error, if it has ended. Whether the table or queue was created then does not matter to
// the user, because creating it again does no harm.
func endOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// result is the result of a verb that changes a queue.
type result struct {
	Outcome   string `json:"outcome"`
	Queue     string `json:"resource"`
	MessageID string `json:"message_id,omitempty"`
	Ambiguous int    `json:"ambiguous"`
	cli.Cost
}

func (r result) Text(w io.Writer) {
	fmt.Fprintln(w, strings.TrimSpace(r.Outcome+" "+strings.TrimSuffix(r.Queue+"/"+r.MessageID, "/")))
}
