package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

// AddTrustConflicts adds the flag of the verbs that confirm a refusal before they report a conflict.
func AddTrustConflicts(cmd *cobra.Command, trust *bool) {
	cmd.Flags().BoolVar(trust, "trust-conflicts", false, "take every refused write for a conflict, without looking at what is there: only for\nnetworks without an intermediary that repeats requests")
}

// UnconfirmedHint names the flag that makes a conflict of a refusal that nothing confirms.
func UnconfirmedHint(err error) error {
	if unknown, ok := errors.AsType[*optimistic.UnknownError](err); ok && unknown.Unconfirmed {
		return WithHint(err, "look at what is there before trying again: a proxy may have delivered the write twice, and another writer has removed the proof; if nothing on the way repeats requests, --trust-conflicts makes this a conflict (exit code 4)")
	}
	return err
}
