package file

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
)

type handlesListOptions struct {
	factory   *cli.Factory
	On        ref.File
	Recursive bool
}

func newHandlesListCmd(f *cli.Factory, runF func(*handlesListOptions) error) *cobra.Command {
	opts := &handlesListOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "list <share/path>",
		Short: "List the SMB clients that have a file or directory open",
		Long: `List the SMB clients that have a file or directory open: which client, for what access, since when. Without a path, list
those of the share's root.

The list can be out of date as soon as it is printed. Shares mounted over NFS have no handles.`,
		Args:    cli.ResourceArgs("<share/path>"),
		Example: "  azconc file handles list reports/2026/q3.xlsx\n  azconc file handles list reports --recursive -o json",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.On, err = ref.ParseShareOrFile(args[0]); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return handlesListRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().BoolVarP(&opts.Recursive, "recursive", "r", false, "include everything in the directory")
	return cmd
}

// handleShown is a handle as it is printed.
type handleShown struct {
	ID         string   `json:"id"`
	Path       string   `json:"path"`
	ClientName string   `json:"client_name,omitempty"`
	ClientIP   string   `json:"client_ip,omitempty"`
	Access     []string `json:"access,omitempty"`
	Opened     string   `json:"opened,omitempty"`
	who        string
}

func handlesShown(all []pessimistic.Handle) []handleShown {
	shown := make([]handleShown, 0, len(all))
	for _, h := range all {
		shown = append(shown, handleShown{ID: h.ID, Path: h.Path, ClientName: h.ClientName, ClientIP: h.ClientIP, Access: h.Access,
			Opened: show.Time(h.Opened), who: h.String()})
	}
	return shown
}

type handlesResult struct {
	Outcome  string        `json:"outcome"`
	Resource string        `json:"resource"`
	Handles  []handleShown `json:"handles"`
	Requests int64         `json:"requests"`
}

func (r handlesResult) Text(w io.Writer) {
	for _, h := range r.Handles {
		fmt.Fprintln(w, strings.TrimSpace(h.ID+"  "+h.Path)+"  "+h.who)
	}
}

func handlesListRun(ctx context.Context, opts *handlesListOptions) error {
	client, err := opts.factory.Directory(opts.On) // the service says the same of a file
	if err != nil {
		return err
	}
	all, err := pessimistic.Handles(ctx, client, &pessimistic.HandlesOptions{Recursive: opts.Recursive})
	if err != nil {
		return err
	}
	r := handlesResult{Outcome: "found", Resource: opts.On.String(), Handles: handlesShown(all), Requests: opts.factory.Requests.Load()}
	if len(all) == 0 {
		r.Outcome = "empty"
	}
	return opts.factory.Print(r)
}

type handlesCloseOptions struct {
	factory   *cli.Factory
	On        ref.File
	IDs       []string
	All       bool
	Recursive bool
	Yes       bool
}

func newHandlesCloseCmd(f *cli.Factory, runF func(*handlesCloseOptions) error) *cobra.Command {
	opts := &handlesCloseOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "close <share/path> (--id <id>... | --all) --yes",
		Short: "Close handles of SMB clients by force",
		Long: `Close handles of SMB clients by force, for clients that hang. A client notices at its next use of the handle and loses what it
has not written; it may reopen the file at once. Prints how many handles were closed.

--yes confirms that this is intended. To be sure that no client reopens the file, acquire its lease first.`,
		Args:    cli.ResourceArgs("<share/path>"),
		Example: "  azconc file handles close reports/2026/q3.xlsx --id 42949673985 --yes\n  azconc file handles close reports/2026 --all --recursive --yes",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.On, err = ref.ParseShareOrFile(args[0]); err != nil {
				return err
			}
			switch {
			case opts.All && len(opts.IDs) > 0:
				return fail.Usagef("--id and --all cannot both be given")
			case !opts.All && len(opts.IDs) == 0:
				return fail.WithHint(fail.Usagef("neither --id nor --all is given"), "azconc file handles list prints the ids")
			case !opts.Yes:
				return fail.WithHint(fail.Usagef("--yes is missing"), "the clients lose what they have not written: give --yes to confirm")
			case opts.Recursive && !opts.All:
				return fail.Usagef("--recursive needs --all: an id names one handle")
			}
			for _, id := range opts.IDs {
				if id == "" || strings.Trim(id, "0123456789") != "" {
					return fail.WithHint(fail.Usagef("--id %q is not a handle's id", id), "azconc file handles list prints the ids")
				}
			}
			if runF != nil {
				return runF(opts)
			}
			return handlesCloseRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringArrayVar(&opts.IDs, "id", nil, "`id` of a handle; may be repeated")
	cmd.Flags().BoolVar(&opts.All, "all", false, "all handles")
	cmd.Flags().BoolVarP(&opts.Recursive, "recursive", "r", false, "with --all, include everything in the directory")
	cmd.Flags().BoolVar(&opts.Yes, "yes", false, "confirm that clients lose what they have not written")
	return cmd
}

type handlesClosedResult struct {
	Outcome  string `json:"outcome"`
	Resource string `json:"resource"`
	Closed   int    `json:"closed"`
	Failed   int    `json:"failed"`
	AtLeast  bool   `json:"at_least"` // a response was lost: more may have been closed
	Requests int64  `json:"requests"`
}

func (r handlesClosedResult) Text(w io.Writer) { fmt.Fprintln(w, r.Closed) }

func handlesCloseRun(ctx context.Context, opts *handlesCloseOptions) error {
	client, err := opts.factory.Directory(opts.On)
	if err != nil {
		return err
	}
	ids := opts.IDs
	if opts.All {
		ids = []string{pessimistic.AllHandles}
	}
	sum, err := pessimistic.ForceClose(ctx, client, ids, &pessimistic.HandlesOptions{Recursive: opts.Recursive})
	if err != nil {
		return err
	}
	return opts.factory.Print(handlesClosedResult{Outcome: "closed", Resource: opts.On.String(), Closed: sum.Closed, Failed: sum.Failed,
		AtLeast: sum.AtLeast, Requests: opts.factory.Requests.Load()})
}
