package flags

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/optimistic"
)

// AddOperationID adds the flag that makes a change idempotent. The resource keeps the ids of the last keeps operations.
func AddOperationID(set *pflag.FlagSet, to *string, what string, keeps int) {
	set.StringVar(to, "op-id", "", fmt.Sprintf("`id` of this change: nothing is written if it is among the last %[2]d ids applied to %[1]s (azconc help operations)", what, keeps))
}

// OperationsInTags is the number of operations that azconc's own tag has room for.
const OperationsInTags = 7

func OperationsHelp() string {
	return fmt.Sprintf(`--op-id gives a change an id, so that running the same command again does not apply it again:

  azconc blob update jobs/state.json --jq '.n += 1' --op-id deploy-42

The resource keeps the ids of the changes that were applied to it: the last %d, for %d days; index tags the last %d,
without an age limit. Within that window a rerun writes nothing and ends with 0: its outcome is "already_applied", in text and
with -o json, and "changed" is false. The id is checked before any condition, so a rerun of an applied change with an
--if-match that has become stale also succeeds. If two commands run at once under one id, one of them applies the change.

A change is applied again if its id has been dropped, or if the resource was deleted and created again, or overwritten
without azconc. The content, the metadata and the tags of a blob are separate: one id on two of them is two changes. An
id does not identify the kind of change: a different change under the same id is not applied.

For an operation that must never repeat, however late, use azconc once run, which keeps its results in a table.`,
		optimistic.OperationsKept, int(optimistic.OperationAge/(24*time.Hour)), OperationsInTags)
}

// Update are the flags of a verb that reads a resource and writes it back. It retries the change when the resource has changed.
type Update struct {
	OperationID string
	MaxAttempts int
	Confirm     optimistic.Confirm
}

// Add adds all of them. what names the part of the resource that is changed, which remembers as many operations as kept.
func (u *Update) Add(set *pflag.FlagSet, what string, kept int) {
	AddOperationID(set, &u.OperationID, what, kept)
	MaxAttempts(set, &u.MaxAttempts)
	AddConfirmConflicts(set, &u.Confirm)
}

// Options returns the options of the update.
func (u *Update) Options(c optimistic.Conditions, send optimistic.SendOptions) *optimistic.UpdateOptions {
	o := &optimistic.UpdateOptions{Conditions: c, OperationID: u.OperationID, Attempts: u.MaxAttempts, SendOptions: send}
	if u.MaxAttempts > 0 {
		o.Elapsed = -1
	}
	o.ConfirmConflicts = u.Confirm
	return o
}
