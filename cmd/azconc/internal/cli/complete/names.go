package complete

import (
	"context"
	"strings"
	"unicode"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	azservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/directory"
	azfiles "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/ptr"
)

// most is the number of names after which a list ends: more cannot be read on a screen.
const most = 1000

// list returns the names that begin with a word. Names that are found before an error are returned with it.
type list func(ctx context.Context, f *cli.Factory, word string) ([]string, error)

// lists has the list for each placeholder. Those that are missing are known to the user alone.
var lists = map[string]list{
	"container":           containers,
	"container/blob":      under(containers, blobs),
	"container/state":     under(containers, blobs),
	"container/counter":   under(containers, blobs),
	"container/name":      under(containers, locks),
	"container/key":       under(containers, nil),
	"table":               tables,
	"table[/partition]":   tables,
	"table/partition":     under(tables, nil),
	"table/partition/row": under(tables, nil),
	"queue":               queues,
	"poison-queue":        queues,
	"queues":              queues,
	"share":               shares,
	"share/path":          under(shares, files),
}

// under lists names with two parts: those of containers, tables or shares with a slash, and behind the slash the names inside.
// A nil inner lists none.
func under(outer list, inner func(ctx context.Context, f *cli.Factory, in, word string) ([]string, error)) list {
	return func(ctx context.Context, f *cli.Factory, word string) ([]string, error) {
		in, rest, inside := strings.Cut(word, "/")
		after := "/"
		var names []string
		var err error
		switch {
		case !inside:
			in = ""
			names, err = outer(ctx, f, word)
		case inner != nil:
			in, after = in+"/", ""
			names, err = inner(ctx, f, strings.TrimSuffix(in, "/"), rest)
		}
		for i := range names {
			names[i] = in + names[i] + after
		}
		return names, err
	}
}

// collect gathers names from the pages of a list, up to the first page that has some.
func collect[P any](ctx context.Context, pages *runtime.Pager[P], of func(P) []string) (names []string, err error) {
	for pages.More() && len(names) == 0 {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return names, err
		}
		names = append(names, of(page)...)
	}
	return names, nil
}

// named returns the names of items, after a prefix.
func named[T any](prefix string, items []*T, name func(*T) *string) (names []string) {
	for _, item := range items {
		names = append(names, prefix+ptr.Value(name(item)))
	}
	return names
}

func containers(ctx context.Context, f *cli.Factory, word string) ([]string, error) {
	service, err := f.BlobService()
	if err != nil {
		return nil, err
	}
	pages := service.NewListContainersPager(&azservice.ListContainersOptions{Prefix: ptr.Optional(word), MaxResults: ptr.Optional(int32(most))})
	return collect(ctx, pages, func(page azservice.ListContainersResponse) []string {
		return named("", page.ContainerItems, func(c *azservice.ContainerItem) *string { return c.Name })
	})
}

// blobs lists one level of names at a time, because a container can have millions.
func blobs(ctx context.Context, f *cli.Factory, in, word string) ([]string, error) {
	client, err := f.Container(ref.Blob{Container: in})
	if err != nil {
		return nil, err
	}
	pages := client.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{Prefix: ptr.Optional(word), MaxResults: ptr.Optional(int32(most))})
	return collect(ctx, pages, func(page container.ListBlobsHierarchyResponse) []string {
		return append(named("", page.Segment.BlobPrefixes, func(p *container.BlobPrefix) *string { return p.Name }),
			named("", page.Segment.BlobItems, func(b *container.BlobItem) *string { return b.Name })...)
	})
}

func locks(ctx context.Context, f *cli.Factory, in, word string) (names []string, err error) {
	client, err := f.Container(ref.Blob{Container: in})
	if err != nil {
		return nil, err
	}
	locker, err := pessimistic.NewLocker(client, nil)
	if err != nil {
		return nil, err
	}
	for lock, err := range locker.List(ctx, &pessimistic.ListOptions{Prefix: word}) {
		if err != nil {
			return names, err
		}
		if names = append(names, lock.Name); len(names) == most {
			break
		}
	}
	return names, nil
}

func tables(ctx context.Context, f *cli.Factory, _ string) ([]string, error) {
	service, err := f.TableService()
	if err != nil {
		return nil, err
	}
	return collect(ctx, service.NewListTablesPager(nil), func(page aztables.ListTablesResponse) []string {
		return named("", page.Tables, func(t *aztables.TableProperties) *string { return t.Name })
	})
}

func queues(ctx context.Context, f *cli.Factory, word string) ([]string, error) {
	service, err := f.QueueService()
	if err != nil {
		return nil, err
	}
	pages := service.NewListQueuesPager(&azqueue.ListQueuesOptions{Prefix: ptr.Optional(word), MaxResults: ptr.Optional(int32(most))})
	return collect(ctx, pages, func(page azqueue.ListQueuesResponse) []string {
		return named("", page.Queues, func(q *azqueue.Queue) *string { return q.Name })
	})
}

func shares(ctx context.Context, f *cli.Factory, word string) ([]string, error) {
	service, err := f.FileService()
	if err != nil {
		return nil, err
	}
	pages := service.NewListSharesPager(&azfiles.ListSharesOptions{Prefix: ptr.Optional(word), MaxResults: ptr.Optional(int32(most))})
	return collect(ctx, pages, func(page azfiles.ListSharesSegmentResponse) []string {
		return named("", page.Shares, func(s *azfiles.Share) *string { return s.Name })
	})
}

func files(ctx context.Context, f *cli.Factory, in, word string) ([]string, error) {
	slash := strings.LastIndexByte(word, '/') + 1
	dir, err := f.Directory(ref.File{Share: in, Path: strings.TrimSuffix(word[:slash], "/")})
	if err != nil {
		return nil, err
	}
	pages := dir.NewListFilesAndDirectoriesPager(&directory.ListFilesAndDirectoriesOptions{Prefix: ptr.Optional(word[slash:]), MaxResults: ptr.Optional(int32(most))})
	return collect(ctx, pages, func(page directory.ListFilesAndDirectoriesResponse) (names []string) {
		for _, name := range named(word[:slash], page.Segment.Directories, func(d *directory.Directory) *string { return d.Name }) {
			names = append(names, name+"/")
		}
		return append(names, named(word[:slash], page.Segment.Files, func(f *directory.File) *string { return f.Name })...)
	})
}

// needsQuotes reports whether a shell would take name for more than a word. Such names are not offered: shells insert the
// common beginning of several candidates without quotes, and a blob may be called $(reboot).
func needsQuotes(name string) bool {
	return strings.HasPrefix(name, "-") || strings.ContainsFunc(name, func(c rune) bool {
		return c < 0x80 && !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("-_./:=@+,%", c) || c >= 0x80 && !unicode.IsPrint(c)
	})
}
