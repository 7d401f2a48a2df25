package file

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/directory"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pkg/ptr"
)

type listResult struct {
	Outcome   string     `json:"outcome"`
	Directory string     `json:"resource"`
	Entries   []listItem `json:"entries"`
	Truncated bool       `json:"truncated"`
}

type listItem struct {
	Name string `json:"name"`
	Type string `json:"type"` // file or directory
	Size int64  `json:"size"` // 0 for a directory
}

func (i listItem) String() string {
	if i.Type == "directory" {
		return i.Name + "/"
	}
	return i.Name
}

func (r listResult) Text(w io.Writer) { cli.PrintLines(w, r.Entries) }

func newListCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list <share/path>",
		Short: "List the files and directories of a directory",
		Long: `List the files and directories of a directory, without those in its directories. Without a path, list those of the share's
root. The names of directories end in a slash.

The size of a file that an SMB client is writing may be out of date: azconc file show asks for the file itself.`,
		Example: "  azconc file list reports/2026\n  azconc file list reports --prefix q3 -o json",
	}
	prefix, most := flags.Listing(cmd.Flags(), "names")
	parse := func(arg string) (ref.File, error) { return ref.ParseShareOrFile(strings.TrimSuffix(arg, "/")) }
	return cli.On(f, cmd, parse, f.Directory, func(ctx context.Context, in ref.File, dir *directory.Client) (cli.Result, error) {
		pages := dir.NewListFilesAndDirectoriesPager(&directory.ListFilesAndDirectoriesOptions{Prefix: ptr.Optional(*prefix)})
		found, more, err := cli.List(ctx, pages, *most, entries)
		return listResult{Outcome: "listed", Directory: in.String(), Entries: found, Truncated: more}, err
	})
}

// entries returns the names of a page in order: the service sends its directories apart from its files.
func entries(page directory.ListFilesAndDirectoriesResponse) (all []listItem) {
	if page.Segment == nil {
		return nil
	}
	for _, d := range page.Segment.Directories {
		all = append(all, listItem{Name: ptr.Value(d.Name), Type: "directory"})
	}
	for _, file := range page.Segment.Files {
		item := listItem{Name: ptr.Value(file.Name), Type: "file"}
		if p := file.Properties; p != nil {
			item.Size = ptr.Value(p.ContentLength)
		}
		all = append(all, item)
	}
	slices.SortFunc(all, func(a, b listItem) int { return strings.Compare(a.Name, b.Name) })
	return all
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
		fmt.Fprintln(w, strings.TrimSpace(h.ID+"  "+show.Name(h.Path))+"  "+show.Line(h.who))
	}
}

func newHandlesListCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list <share/path>",
		Short: "List the SMB clients that have a file or directory open",
		Long: `List the SMB clients that have a file or directory open: which client, for what access, since when. Without a path, list
those of the share's root.

The list can be out of date as soon as it is printed. Shares mounted over NFS have no handles.`,
		Example: "  azconc file handles list reports/2026/q3.xlsx\n  azconc file handles list reports --recursive -o json",
	}
	recursive := cmd.Flags().BoolP("recursive", "r", false, "include everything in the directory")
	// The service says the same of a directory and of a file.
	return cli.On(f, cmd, ref.ParseShareOrFile, f.Directory, func(ctx context.Context, on ref.File, client *directory.Client) (cli.Result, error) {
		all, err := files.Handles(ctx, client, &files.HandlesOptions{Recursive: *recursive, Hooks: f.Monitor.Hooks()})
		r := handlesResult{Outcome: "found", Resource: on.String(), Handles: handlesShown(all), Requests: f.Requests.Load()}
		if len(all) == 0 {
			r.Outcome = "empty"
		}
		return r, err
	})
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

func newHandlesCloseCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "close <share/path> (--id <id>... | --all) --yes",
		Short: "Close handles of SMB clients by force",
		Long: `Close handles of SMB clients by force, for clients that hang. A client notices at its next use of the handle and loses what it
has not written; it may reopen the file at once. Prints how many handles were closed.

--yes confirms that this is intended. To be sure that no client reopens the file, acquire its lease first.`,
		Example: "  azconc file handles close reports/2026/q3.xlsx --id 42949673985 --yes\n  azconc file handles close reports/2026 --all --recursive --yes",
	}
	ids := cmd.Flags().StringArray("id", nil, "`id` of a handle; may be repeated")
	all := cmd.Flags().Bool("all", false, "all handles")
	recursive := cmd.Flags().BoolP("recursive", "r", false, "with --all, include everything in the directory")
	yes := cmd.Flags().Bool("yes", false, "confirm that clients lose what they have not written")
	parse := cli.Checked(ref.ParseShareOrFile, func() error {
		switch {
		case *all && len(*ids) > 0:
			return fail.Usagef("--id and --all cannot both be given")
		case !*all && len(*ids) == 0:
			return fail.WithHint(fail.Usagef("neither --id nor --all is given"), "azconc file handles list prints the ids")
		case !*yes:
			return fail.WithHint(fail.Usagef("--yes is missing"), "the clients lose what they have not written: give --yes to confirm")
		case *recursive && !*all:
			return fail.Usagef("--recursive needs --all: an id names one handle")
		}
		for _, id := range *ids {
			if id == "" || strings.Trim(id, "0123456789") != "" {
				return fail.WithHint(fail.Usagef("--id %q is not a handle's id", id), "azconc file handles list prints the ids")
			}
		}
		return nil
	})
	return cli.On(f, cmd, parse, f.Directory, func(ctx context.Context, on ref.File, client *directory.Client) (cli.Result, error) {
		if *all {
			*ids = []string{files.AllHandles}
		}
		sum, err := files.ForceClose(ctx, client, *ids, &files.HandlesOptions{Recursive: *recursive, Hooks: f.Monitor.Hooks()})
		return handlesClosedResult{
			Outcome: "closed", Resource: on.String(), Closed: sum.Closed, Failed: sum.Failed, AtLeast: sum.AtLeast, Requests: f.Requests.Load(),
		}, err
	})
}
