package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

// addOperationID adds the flag that makes a change idempotent. keeps says for how many operations the id is remembered.
func addOperationID(cmd *cobra.Command, to *string, what string, keeps int) {
	cmd.Flags().StringVar(to, "op-id", "", fmt.Sprintf("`id` of this change: if %s has had it among its last %d, nothing is\nwritten (azconc help operations)", what, keeps))
}

// operationsInTags is how many operations the tag of azconc's own has room for.
const operationsInTags = 7

func operationsHelp() string {
	return fmt.Sprintf(`--op-id gives a change an id, so that running the same command again does not apply it again:

  azconc blob update jobs/state.json --jq '.n += 1' --op-id deploy-42

The resource remembers the ids of the changes that were applied to it: the last %d, for %d days; index tags the last %d,
of any age. Within that window a rerun writes nothing and ends with 0: "already_applied" is its outcome, in text and with
-o json, and "changed" is false. That is looked at before any condition, so that a rerun of an applied change with an
--if-match that is stale by now succeeds, too. Of two commands that run at once under one id, one applies the change.

An id that is forgotten is applied again; so is one whose resource was deleted and created meanwhile, or overwritten
without azconc. The content, the metadata and the tags of a blob are separate: one id on two of them is two changes. An
id says nothing of what the change was: another change under the same id is not made.

What must never repeat, however late, is run by azconc once run, which keeps its results in a table.`,
		optimistic.OperationsKept, int(optimistic.OperationAge/(24*time.Hour)), operationsInTags)
}
