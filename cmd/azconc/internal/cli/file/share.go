package file

import (
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/azerr"
)

type shareOptions struct {
	factory *cli.Factory
	Share   ref.File
	LeaseID string
}

// newShareVerbCmd makes the command of a verb around run; the caller says what it is called and does.
func newShareVerbCmd(f *cli.Factory, runF func(*shareOptions) error, run func(context.Context, *shareOptions) error) (*cobra.Command, *shareOptions) {
	opts := &shareOptions{factory: f}
	cmd := &cobra.Command{
		Args: cli.ResourceArgs("<share>"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Share, err = ref.ParseShare(args[0]); err != nil {
				return err
			}
			if opts.LeaseID != "" {
				if opts.LeaseID, err = flags.ParseLeaseID(opts.LeaseID); err != nil {
					return err
				}
			}
			if runF != nil {
				return runF(opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	return cmd, opts
}

func newShareCreateCmd(f *cli.Factory, runF func(*shareOptions) error) *cobra.Command {
	cmd, _ := newShareVerbCmd(f, runF, shareCreateRun)
	cmd.Use, cmd.Short = "create <share>", "Create a share"
	cmd.Long = "Create a share. If it already exists, the exit code is 7; if a response was lost, azconc may have created it, and the exit code is 5."
	cmd.Example = "  azconc share create reports"
	return cmd
}

func shareCreateRun(ctx context.Context, opts *shareOptions) error {
	client, err := opts.factory.Share(opts.Share)
	if err != nil {
		return err
	}
	r := result{Outcome: "created", Resource: opts.Share.String()}
	s, err := cli.SendWrite(ctx, func(ctx context.Context) error {
		resp, err := client.Create(ctx, nil)
		r.ETag = string(cli.Deref(resp.ETag))
		return err
	})
	if err != nil {
		return cli.AfterAmbiguous(s, err)
	}
	r.Ambiguous = s.Ambiguous
	return printFile(opts.factory, r)
}

func newShareDeleteCmd(f *cli.Factory, runF func(*shareOptions) error) *cobra.Command {
	cmd, opts := newShareVerbCmd(f, runF, shareDeleteRun)
	cmd.Use, cmd.Short = "delete <share> [--lease-id <id>]", "Delete a share and everything in it"
	cmd.Long = `Delete a share and everything in it, even if clients have it open. A lease of the share prevents that unless its id is given;
leases of files in it do not. The name is free again only when the service has removed the share, at least 30 s later.`
	cmd.Example = "  azconc share delete reports"
	cmd.Flags().StringVar(&opts.LeaseID, "lease-id", "", "`id` under which its lease is held")
	return cmd
}

func shareDeleteRun(ctx context.Context, opts *shareOptions) error {
	client, err := opts.factory.Share(opts.Share)
	if err != nil {
		return err
	}
	s, err := cli.SendWrite(ctx, func(ctx context.Context) error {
		o := &share.DeleteOptions{}
		if opts.LeaseID != "" {
			o.LeaseAccessConditions = &share.LeaseAccessConditions{LeaseID: &opts.LeaseID}
		}
		_, err := client.Delete(ctx, o)
		return err
	})
	if s.Ambiguous > 0 && azerr.Has(err, "ShareBeingDeleted", "ShareNotFound") {
		return &fail.UnknownError{Why: "the share is gone: this command or another client deleted it", Err: err}
	}
	if err != nil {
		return cli.AfterAmbiguous(s, err)
	}
	return printFile(opts.factory, result{Outcome: "deleted", Resource: opts.Share.String(), Ambiguous: s.Ambiguous})
}

func newShareShowCmd(f *cli.Factory, runF func(*shareOptions) error) *cobra.Command {
	cmd, _ := newShareVerbCmd(f, runF, shareShowRun)
	cmd.Use, cmd.Short = "show <share>", "Show a share's properties and metadata"
	cmd.Example = "  azconc share show reports -o json"
	return cmd
}

type shareShowResult struct {
	Outcome      string            `json:"outcome"`
	Share        string            `json:"resource"`
	ETag         string            `json:"etag"`
	LastModified time.Time         `json:"last_modified"`
	LeaseState   string            `json:"lease_state,omitempty"`
	QuotaGiB     int32             `json:"quota_gib,omitempty"`
	Metadata     map[string]string `json:"metadata"`
}

func (r shareShowResult) Text(w io.Writer) {
	fields := []string{"share", r.Share, "etag", r.ETag, "last modified", show.Time(r.LastModified), "lease", r.LeaseState}
	for _, name := range slices.Sorted(maps.Keys(r.Metadata)) {
		fields = append(fields, "metadata "+name, r.Metadata[name])
	}
	show.Fields(w, fields...)
}

func shareShowRun(ctx context.Context, opts *shareOptions) error {
	client, err := opts.factory.Share(opts.Share)
	if err != nil {
		return err
	}
	p, err := client.GetProperties(ctx, nil)
	if err != nil {
		return err
	}
	return opts.factory.Print(shareShowResult{
		Outcome: "found", Share: opts.Share.String(), ETag: string(cli.Deref(p.ETag)), LastModified: cli.Deref(p.LastModified).UTC(),
		LeaseState: lease.Text(p.LeaseState), QuotaGiB: cli.Deref(p.Quota), Metadata: cli.OwnMetadata(p.Metadata),
	})
}
