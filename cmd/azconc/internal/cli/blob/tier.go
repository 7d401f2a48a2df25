package blob

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
)

type tierResult struct {
	Outcome  string `json:"outcome"`
	Resource string `json:"resource"`
	Tier     string `json:"tier"`
	cli.Sent
}

func (r tierResult) Text(w io.Writer) {
	fmt.Fprintf(w, "%s %s: %s\n", r.Outcome, r.Resource, r.Tier)
}

func newTierSetCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set <container/blob> <tier>",
		Short: "Set a blob's access tier",
		Long: `Set a blob's access tier: hot, cool, cold or archive. The tier does not affect the blob's ETag, so the last writer wins.

If the response is lost and the blob has the tier, the command has succeeded, no matter who set it. With --if-tags the request
is sent again instead.
A blob that comes back from the archive cannot be read for hours: the outcome is then "pending".`,
		Example: `  azconc blob tier set jobs/2025.log archive
  azconc blob tier set jobs/2025.log hot --priority high`,
	}
	set := cmd.Flags()
	word := set.String("priority", "", "how soon a blob comes back from the archive: {standard | high}")
	var conditions optimistic.Conditions
	flags.WriteConditions(set, &conditions, flags.CondTags|flags.CondLease)
	var tier blob.AccessTier
	var priority blob.RehydratePriority
	parse := func(arg string) (on ref.Blob, err error) {
		if on, err = ref.ParseWritable(arg); err != nil {
			return on, err
		}
		for _, t := range []blob.AccessTier{blob.AccessTierHot, blob.AccessTierCool, blob.AccessTierCold, blob.AccessTierArchive} {
			if strings.EqualFold(string(t), set.Arg(1)) {
				tier = t
			}
		}
		if tier == "" {
			return on, fail.Usagef("%q is not a tier: give hot, cool, cold or archive", set.Arg(1))
		}
		for _, p := range append(blob.PossibleRehydratePriorityValues(), "") {
			if strings.EqualFold(string(p), *word) {
				priority = p
				return on, nil
			}
		}
		return on, fail.Usagef("--priority %q is neither standard nor high", *word)
	}
	return cli.On(f, cmd, parse, f.Blob, func(ctx context.Context, on ref.Blob, client *blob.Client) (cli.Result, error) {
		r, err := blobs.SetTier(ctx, client, tier, &blobs.TierOptions{Conditions: conditions, Priority: priority})
		if err != nil {
			return nil, fail.Tally(err, r.Result)
		}
		out := tierResult{Outcome: "updated", Resource: on.String(), Tier: strings.ToLower(string(tier)), Sent: cli.SentFor(r.Result)}
		if r.Pending {
			out.Outcome = "pending"
		}
		return out, nil
	})
}
