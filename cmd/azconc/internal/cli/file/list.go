package file

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/directory"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/ptr"
)

type listOptions struct {
	In     ref.File
	Prefix string
	Max    int
}

func listVerb() cli.Verb[listOptions] {
	return cli.Verb[listOptions]{
		Use:   "list <share/path>",
		Short: "List the files and directories of a directory",
		Long: `List the files and directories of a directory, without those in its directories. Without a path, list those of the share's
root. The names of directories end in a slash.

The size of a file that an SMB client is writing may be out of date: azconc file show asks for the file itself.`,
		Example: "  azconc file list reports/2026\n  azconc file list reports --prefix q3 -o json",
		Flags: func(opts *listOptions, set *pflag.FlagSet) {
			flags.Listing(set, &opts.Prefix, &opts.Max, "names")
		},
		Resource: func(opts *listOptions, arg string) (err error) {
			opts.In, err = ref.ParseShareOrFile(strings.TrimSuffix(arg, "/"))
			return err
		},
		Run: listRun,
	}
}

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

func listRun(ctx context.Context, f *cli.Factory, opts *listOptions) error {
	dir, err := f.Directory(opts.In)
	if err != nil {
		return err
	}
	r := listResult{Outcome: "listed", Directory: opts.In.String(), Entries: []listItem{}, wide: f.OutTerminal}
	pages := dir.NewListFilesAndDirectoriesPager(&directory.ListFilesAndDirectoriesOptions{Prefix: ptr.Optional(opts.Prefix)})
	for pages.More() && !r.Truncated {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		r.Entries = append(r.Entries, entries(page)...)
		if opts.Max > 0 && len(r.Entries) > opts.Max {
			r.Entries, r.Truncated = r.Entries[:opts.Max], true
		}
	}
	return f.Print(r)
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
