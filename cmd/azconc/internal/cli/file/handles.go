package file

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic/files"
)

type handlesListOptions struct {
	On        ref.File
	Recursive bool
}

func handlesListVerb() cli.Verb[handlesListOptions] {
	return cli.Verb[handlesListOptions]{
		Use:   "list <share/path>",
		Short: "List the SMB clients that have a file or directory open",
		Long: `List the SMB clients that have a file or directory open: which client, for what access, since when. Without a path, list
those of the share's root.

The list can be out of date as soon as it is printed. Shares mounted over NFS have no handles.`,
		Example: "  azconc file handles list reports/2026/q3.xlsx\n  azconc file handles list reports --recursive -o json",
		Flags: func(opts *handlesListOptions, set *pflag.FlagSet) {
			set.BoolVarP(&opts.Recursive, "recursive", "r", false, "include everything in the directory")
		},
		Resource: func(opts *handlesListOptions, arg string) (err error) {
			opts.On, err = ref.ParseShareOrFile(arg)
			return err
		},
		Run: handlesListRun,
	}
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

func handlesShown(all []files.Handle) []handleShown {
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

func handlesListRun(ctx context.Context, f *cli.Factory, opts *handlesListOptions) error {
	client, err := f.Directory(opts.On) // the service says the same of a file
	if err != nil {
		return err
	}
	all, err := files.Handles(ctx, client, &files.HandlesOptions{Recursive: opts.Recursive})
	if err != nil {
		return err
	}
	r := handlesResult{Outcome: "found", Resource: opts.On.String(), Handles: handlesShown(all), Requests: f.Requests.Load()}
	if len(all) == 0 {
		r.Outcome = "empty"
	}
	return f.Print(r)
}

type handlesCloseOptions struct {
	On        ref.File
	IDs       []string
	All       bool
	Recursive bool
	Yes       bool
}

func handlesCloseVerb() cli.Verb[handlesCloseOptions] {
	return cli.Verb[handlesCloseOptions]{
		Use:   "close <share/path> (--id <id>... | --all) --yes",
		Short: "Close handles of SMB clients by force",
		Long: `Close handles of SMB clients by force, for clients that hang. A client notices at its next use of the handle and loses what it
has not written; it may reopen the file at once. Prints how many handles were closed.

--yes confirms that this is intended. To be sure that no client reopens the file, acquire its lease first.`,
		Example: "  azconc file handles close reports/2026/q3.xlsx --id 42949673985 --yes\n  azconc file handles close reports/2026 --all --recursive --yes",
		Flags: func(opts *handlesCloseOptions, set *pflag.FlagSet) {
			set.StringArrayVar(&opts.IDs, "id", nil, "`id` of a handle; may be repeated")
			set.BoolVar(&opts.All, "all", false, "all handles")
			set.BoolVarP(&opts.Recursive, "recursive", "r", false, "with --all, include everything in the directory")
			set.BoolVar(&opts.Yes, "yes", false, "confirm that clients lose what they have not written")
		},
		Resource: func(opts *handlesCloseOptions, arg string) (err error) {
			opts.On, err = ref.ParseShareOrFile(arg)
			return err
		},
		Parse: func(opts *handlesCloseOptions, _ cli.Input) error {
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
			return nil
		},
		Run: handlesCloseRun,
	}
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

func handlesCloseRun(ctx context.Context, f *cli.Factory, opts *handlesCloseOptions) error {
	client, err := f.Directory(opts.On)
	if err != nil {
		return err
	}
	ids := opts.IDs
	if opts.All {
		ids = []string{files.AllHandles}
	}
	sum, err := files.ForceClose(ctx, client, ids, &files.HandlesOptions{Recursive: opts.Recursive})
	if err != nil {
		return err
	}
	return f.Print(handlesClosedResult{Outcome: "closed", Resource: opts.On.String(), Closed: sum.Closed, Failed: sum.Failed,
		AtLeast: sum.AtLeast, Requests: f.Requests.Load()})
}
