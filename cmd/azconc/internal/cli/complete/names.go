package complete

import (
	"context"
	"strings"
	"unicode"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	azservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	azfiles "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
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
	"container/name":      under(containers, blobs),
	"container/key":       under(containers, nil),
	"table":               tables,
	"table[/partition]":   tables,
	"table/partition":     under(tables, nil),
	"table/partition/row": under(tables, nil),
	"queue":               queues,
	"poison-queue":        queues,
	"queues":              queues,
	"share":               shares,
	"share/path":          under(shares, nil),
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

// named returns the names of items, on the first page that has some.
func named[P, T any](ctx context.Context, pages *runtime.Pager[P], items func(P) []T, name func(T) *string) (names []string, err error) {
	for pages.More() && len(names) == 0 {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return names, err
		}
		for _, item := range items(page) {
			names = append(names, ptr.Value(name(item)))
		}
	}
	return names, nil
}

func containers(ctx context.Context, f *cli.Factory, word string) ([]string, error) {
	service, err := f.BlobService()
	if err != nil {
		return nil, err
	}
	pages := service.NewListContainersPager(&azservice.ListContainersOptions{Prefix: ptr.Optional(word), MaxResults: ptr.Optional(int32(most))})
	return named(ctx, pages, func(page azservice.ListContainersResponse) []*azservice.ContainerItem { return page.ContainerItems },
		func(c *azservice.ContainerItem) *string { return c.Name })
}

// blobs lists one level of names at a time, because a container can have millions.
func blobs(ctx context.Context, f *cli.Factory, in, word string) ([]string, error) {
	client, err := f.Container(ref.Blob{Container: in})
	if err != nil {
		return nil, err
	}
	pages := client.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{Prefix: ptr.Optional(word), MaxResults: ptr.Optional(int32(most))})
	return named(ctx, pages, func(page container.ListBlobsHierarchyResponse) (names []*string) {
		for _, p := range page.Segment.BlobPrefixes {
			names = append(names, p.Name)
		}
		for _, b := range page.Segment.BlobItems {
			names = append(names, b.Name)
		}
		return names
	}, func(name *string) *string { return name })
}

func tables(ctx context.Context, f *cli.Factory, _ string) ([]string, error) {
	service, err := f.TableService()
	if err != nil {
		return nil, err
	}
	return named(ctx, service.NewListTablesPager(nil), func(page aztables.ListTablesResponse) []*aztables.TableProperties { return page.Tables },
		func(t *aztables.TableProperties) *string { return t.Name })
}

func queues(ctx context.Context, f *cli.Factory, word string) ([]string, error) {
	service, err := f.QueueService()
	if err != nil {
		return nil, err
	}
	pages := service.NewListQueuesPager(&azqueue.ListQueuesOptions{Prefix: ptr.Optional(word), MaxResults: ptr.Optional(int32(most))})
	return named(ctx, pages, func(page azqueue.ListQueuesResponse) []*azqueue.Queue { return page.Queues }, func(q *azqueue.Queue) *string { return q.Name })
}

func shares(ctx context.Context, f *cli.Factory, word string) ([]string, error) {
	service, err := f.FileService()
	if err != nil {
		return nil, err
	}
	pages := service.NewListSharesPager(&azfiles.ListSharesOptions{Prefix: ptr.Optional(word), MaxResults: ptr.Optional(int32(most))})
	return named(ctx, pages, func(page azfiles.ListSharesSegmentResponse) []*azfiles.Share { return page.Shares }, func(s *azfiles.Share) *string { return s.Name })
}

// needsQuotes reports whether a shell would take name for more than a word. Such names are not offered: shells insert the
// common beginning of several candidates without quotes, and a blob may be called $(reboot).
func needsQuotes(name string) bool {
	return strings.HasPrefix(name, "-") || strings.ContainsFunc(name, func(c rune) bool {
		return c < 0x80 && !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("-_./:=@+,%", c) || c >= 0x80 && !unicode.IsPrint(c)
	})
}
