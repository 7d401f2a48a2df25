package blob

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
)

type tierSetOptions struct {
	Blob       ref.Blob
	Tier       blob.AccessTier
	Priority   blob.RehydratePriority
	Conditions optimistic.Conditions
}

func tierSetVerb() cli.Verb[tierSetOptions] {
	var priority string
	return cli.Verb[tierSetOptions]{
		Use:   "set <container/blob> <tier>",
		Short: "Set a blob's access tier",
		Long: `Set a blob's access tier: hot, cool, cold or archive. The tier does not affect the blob's ETag, so the last writer wins.

If the response is lost and the blob has the tier, the command has succeeded, no matter who set it. With --if-tags the request
is sent again instead.
A blob that comes back from the archive cannot be read for hours: the outcome is then "pending".`,
		Example: `  azconc blob tier set jobs/2025.log archive
  azconc blob tier set jobs/2025.log hot --priority high`,
		Flags: func(opts *tierSetOptions, set *pflag.FlagSet) {
			set.StringVar(&priority, "priority", "", "how soon a blob comes back from the archive: {standard | high}")
			flags.WriteConditions(set, &opts.Conditions, flags.CondTags|flags.CondLease)
		},
		Resource: func(opts *tierSetOptions, arg string) (err error) {
			opts.Blob, err = ref.ParseWritable(arg)
			return err
		},
		Parse: func(opts *tierSetOptions, in cli.Input) error {
			for _, t := range []blob.AccessTier{blob.AccessTierHot, blob.AccessTierCool, blob.AccessTierCold, blob.AccessTierArchive} {
				if strings.EqualFold(string(t), in.Args[1]) {
					opts.Tier = t
				}
			}
			if opts.Tier == "" {
				return fail.Usagef("%q is not a tier: give hot, cool, cold or archive", in.Args[1])
			}
			for _, p := range append(blob.PossibleRehydratePriorityValues(), "") {
				if strings.EqualFold(string(p), priority) {
					opts.Priority = p
					return nil
				}
			}
			return fail.Usagef("--priority %q is neither standard nor high", priority)
		},
		Run: tierSetRun,
	}
}

type tierResult struct {
	Outcome   string `json:"outcome"`
	Resource  string `json:"resource"`
	Tier      string `json:"tier"`
	Ambiguous int    `json:"ambiguous"`
	Resolved  int    `json:"resolved"`
	Requests  int    `json:"requests"`
	ElapsedMS int64  `json:"elapsed_ms"`
}

func (r tierResult) Text(w io.Writer) {
	fmt.Fprintf(w, "%s %s: %s\n", r.Outcome, r.Resource, r.Tier)
}

func tierSetRun(ctx context.Context, f *cli.Factory, opts *tierSetOptions) error {
	client, err := f.Blob(opts.Blob)
	if err != nil {
		return err
	}
	r, err := blobs.SetTier(ctx, client, opts.Tier, &blobs.TierOptions{Conditions: opts.Conditions, Priority: opts.Priority})
	if err != nil {
		return fail.Tally(err, r.Result)
	}
	out := tierResult{
		Outcome: "updated", Resource: opts.Blob.String(), Tier: strings.ToLower(string(opts.Tier)), Ambiguous: r.Ambiguous, Resolved: r.Resolved,
		Requests: r.Requests, ElapsedMS: r.Elapsed.Milliseconds(),
	}
	if r.Pending {
		out.Outcome = "pending"
	}
	return f.Print(out)
}
