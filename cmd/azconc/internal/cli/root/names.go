package root

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/directory"
	files "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

// The names of an account cost one request for a page of namesMost, and the shell waits for them for namesWait at most.
const namesMost, namesWait = int32(100), 500 * time.Millisecond

// namedArguments are those of a usage line before a flag or a choice, and its verb; resourceWord is one of them that the account has.
var namedArguments = regexp.MustCompile(`^\S+( \[?<\S+)*`)
var resourceWord = regexp.MustCompile(`^\[?<(?:poison-)?(container|queue|table|share)(/)?`)

// completeArgument completes the next argument of a verb: with names of the account where the usage line has a resource, and with local
// files in the command that the verb runs.
func completeArgument(f *cli.Factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, start string) (names []string, directive cobra.ShellCompDirective) {
		words := append(strings.Fields(namedArguments.FindString(cmd.Use)), "")
		word := words[min(len(args)+1, len(words)-1)]
		if strings.HasSuffix(words[1], "...") {
			word = words[1]
		}
		if word == "" && strings.Contains(cmd.Use, "-- <command>") {
			return nil, cobra.ShellCompDirectiveDefault
		}
		if kind := resourceWord.FindStringSubmatch(word); kind != nil {
			ctx, cancel := context.WithTimeout(cmd.Context(), namesWait)
			defer cancel()
			names = namesOf(ctx, f, kind[1], kind[2], start)
		}
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, "/") }) {
			directive = cobra.ShellCompDirectiveNoSpace
		}
		return names, directive | cobra.ShellCompDirectiveNoFileComp
	}
}

// namesOf returns the names of a kind that begin with start, as far as one page has them. slash follows a name if the usage line has
// another name in it. There are none if no account is given, or if it does not answer with them.
func namesOf(ctx context.Context, f *cli.Factory, kind, slash, start string) (names []string) {
	in, rest, inside := strings.Cut(start, "/")
	dir := rest[:strings.LastIndex(rest, "/")+1]
	add := func(before string, name *string, after string) {
		full := before + ptr.Value(name) + after
		if strings.HasPrefix(full, start) && show.Name(full) == full && strings.TrimSpace(full) == full && len(names) < int(namesMost) {
			names = append(names, full)
		}
	}
	prefix, most := ptr.Optional(start), ptr.Optional(namesMost)
	switch {
	case strings.ContainsAny(in, "':"), inside && (slash == "" || ref.ValidContainer(in) != nil): // no name can begin like that
	case kind == "container" && inside:
		if c, err := f.Container(ref.Blob{Container: in}); err == nil {
			page := first(ctx, c.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{Prefix: ptr.Optional(rest), MaxResults: most}))
			for _, p := range ptr.Value(page.Segment).BlobPrefixes {
				add(in+"/", p.Name, "")
			}
			for _, b := range ptr.Value(page.Segment).BlobItems {
				add(in+"/", b.Name, "")
			}
		}
	case kind == "container":
		if c, err := f.BlobService(); err == nil {
			for _, found := range first(ctx, c.NewListContainersPager(&service.ListContainersOptions{Prefix: prefix, MaxResults: most})).ContainerItems {
				add("", found.Name, slash)
			}
		}
	case kind == "share" && inside:
		if c, err := f.Directory(ref.File{Share: in, Path: dir}); err == nil {
			page := first(ctx, c.NewListFilesAndDirectoriesPager(&directory.ListFilesAndDirectoriesOptions{Prefix: ptr.Optional(strings.TrimPrefix(rest, dir)), MaxResults: most}))
			for _, d := range ptr.Value(page.Segment).Directories {
				add(in+"/"+dir, d.Name, "/")
			}
			for _, file := range ptr.Value(page.Segment).Files {
				add(in+"/"+dir, file.Name, "")
			}
		}
	case kind == "share":
		if c, err := f.FileService(); err == nil {
			for _, found := range first(ctx, c.NewListSharesPager(&files.ListSharesOptions{Prefix: prefix, MaxResults: most})).Shares {
				add("", found.Name, slash)
			}
		}
	case kind == "queue":
		if c, err := f.QueueService(); err == nil {
			for _, found := range first(ctx, c.NewListQueuesPager(&azqueue.ListQueuesOptions{Prefix: prefix, MaxResults: most})).Queues {
				add("", found.Name, "")
			}
		}
	case !inside: // tables, which are listed by a filter
		if c, err := f.TableService(); err == nil {
			filter := "TableName ge '" + start + "' and TableName lt '" + start + "{'" // { follows all letters
			for _, found := range first(ctx, c.NewListTablesPager(&aztables.ListTablesOptions{Filter: &filter, Top: most})).Tables {
				add("", found.Name, slash)
			}
		}
	}
	return names
}

// first returns the first page of a list, and an empty one if there is none.
func first[P any](ctx context.Context, pages *runtime.Pager[P]) P {
	page, _ := wire.Request(ctx, "list names", pages.NextPage)
	return page
}
