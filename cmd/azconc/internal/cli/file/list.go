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
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/ptr"
)

type listResult struct {
	Outcome   string     `json:"outcome"`
	Directory string     `json:"resource"`
	Entries   []listItem `json:"entries"`
	Truncated bool       `json:"truncated"`

	wide bool
}

type listItem struct {
	Name string `json:"name"`
	Type string `json:"type"` // file or directory
	Size int64  `json:"size"` // 0 for a directory
}

func (r listResult) Text(w io.Writer) {
	for _, e := range r.Entries {
		name, size := e.Name, show.Bytes(e.Size)
		if e.Type == "directory" {
			name, size = name+"/", ""
		}
		if r.wide {
			fmt.Fprintf(w, "%10s  %s\n", size, name)
		} else {
			fmt.Fprintln(w, name)
		}
	}
}

func newListCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list <share/path>",
		Short: "List the files and directories of a directory",
		Long: `List the files and directories of a directory, without those in its directories. Without a path, list those of the share's
root. The names of directories end in a slash.

The size of a file that an SMB client is writing may be out of date: azconc file show asks for the file itself.`,
		Example: "  azconc file list reports/2026\n  azconc file list reports --prefix q3 -o json",
	}
	var prefix string
	var most int
	flags.Listing(cmd.Flags(), &prefix, &most, "names")
	parse := func(arg string) (ref.File, error) { return ref.ParseShareOrFile(strings.TrimSuffix(arg, "/")) }
	return cli.On(f, cmd, parse, f.Directory, func(ctx context.Context, in ref.File, dir *directory.Client) (cli.Result, error) {
		pages := dir.NewListFilesAndDirectoriesPager(&directory.ListFilesAndDirectoriesOptions{Prefix: ptr.Optional(prefix)})
		found, more, err := cli.List(ctx, pages, most, entries)
		return listResult{Outcome: "listed", Directory: in.String(), Entries: found, Truncated: more, wide: f.OutTerminal}, err
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
