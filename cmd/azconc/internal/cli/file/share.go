package file

import (
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pkg/ptr"
)

type shareOptions struct {
	Share   ref.File
	LeaseID string
}

func (o *shareOptions) resource(arg string) (err error) {
	o.Share, err = ref.ParseShare(arg)
	return err
}

func shareCreateVerb() cli.Verb[shareOptions] {
	return cli.Verb[shareOptions]{
		Use:   "create <share>",
		Short: "Create a share",
		Long: `Create a share. If it already exists, the exit code is 7. A share does not record who created it: if a response was lost
and the share exists then, the exit code is 5.`,
		Example:  "  azconc share create reports",
		Resource: (*shareOptions).resource,
		Run:      shareCreateRun,
	}
}

func shareCreateRun(ctx context.Context, f *cli.Factory, opts *shareOptions) error {
	client, err := f.Share(opts.Share)
	if err != nil {
		return err
	}
	r, err := files.CreateShare(ctx, client, nil)
	if err != nil {
		return err
	}
	return printFile(f, result{Outcome: "created", Resource: opts.Share.String(), ETag: string(r.ETag), Ambiguous: r.Ambiguous})
}

func shareDeleteVerb() cli.Verb[shareOptions] {
	return cli.Verb[shareOptions]{
		Use:   "delete <share> [--lease-id <id>]",
		Short: "Delete a share and everything in it",
		Long: `Delete a share and everything in it, even if clients have it open. A lease of the share prevents that unless its id is given;
leases of files in it do not. The name is free again only when the service has removed the share, at least 30 s later.`,
		Example: "  azconc share delete reports",
		Flags: func(opts *shareOptions, set *pflag.FlagSet) {
			flags.LeaseID(set, &opts.LeaseID, "`id` under which its lease is held")
		},
		Resource: (*shareOptions).resource,
		Run:      shareDeleteRun,
	}
}

func shareDeleteRun(ctx context.Context, f *cli.Factory, opts *shareOptions) error {
	client, err := f.Share(opts.Share)
	if err != nil {
		return err
	}
	r, err := files.DeleteShare(ctx, client, &files.DeleteShareOptions{LeaseID: opts.LeaseID})
	if err != nil {
		return err
	}
	return printFile(f, result{Outcome: "deleted", Resource: opts.Share.String(), Ambiguous: r.Ambiguous})
}

func shareShowVerb() cli.Verb[shareOptions] {
	return cli.Verb[shareOptions]{
		Use:      "show <share>",
		Short:    "Show a share's properties and metadata",
		Example:  "  azconc share show reports -o json",
		Resource: (*shareOptions).resource,
		Run:      shareShowRun,
	}
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

func shareShowRun(ctx context.Context, f *cli.Factory, opts *shareOptions) error {
	client, err := f.Share(opts.Share)
	if err != nil {
		return err
	}
	p, err := client.GetProperties(ctx, nil)
	if err != nil {
		return err
	}
	return f.Print(shareShowResult{
		Outcome: "found", Share: opts.Share.String(), ETag: string(ptr.Value(p.ETag)), LastModified: ptr.Value(p.LastModified).UTC(),
		LeaseState: lease.Text(p.LeaseState), QuotaGiB: ptr.Value(p.Quota), Metadata: cli.OwnMetadata(p.Metadata),
	})
}
