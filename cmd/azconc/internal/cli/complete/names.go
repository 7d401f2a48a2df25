package complete

import (
	"context"
	"net/url"
	"regexp"
	"slices"
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

// lists has the list for each placeholder.
var lists = map[string]list{
	"container":           containers,
	"container/blob":      under(containers, blobs),
	"container/state":     under(containers, blobs),
	"container/name":      under(containers, locks),
	"container/key":       under(containers, keys),
	"container/counter":   under(containers, counters),
	"table":               tables,
	"table[/partition]":   tables,
	"table/partition":     under(tables, nil),
	"table/partition/row": under(tables, nil),
	"queue":               queues,
	"poison-queue":        queues,
	"queues":              queues,
	"share":               shares,
	"share/path":          under(shares, files),
	"tier":                words("hot", "cool", "cold", "archive"),
}

// words lists words that are the same for every account.
func words(all ...string) list {
	return func(context.Context, *cli.Factory, string) ([]string, error) { return slices.Clone(all), nil }
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

func containers(ctx context.Context, f *cli.Factory, word string) ([]string, error) {
	service, err := f.BlobService()
	if err != nil {
		return nil, err
	}
	pages := service.NewListContainersPager(&azservice.ListContainersOptions{Prefix: ptr.Optional(word), MaxResults: ptr.Optional(int32(most))})
	return collect(ctx, pages, func(page azservice.ListContainersResponse) (names []string) {
		for _, c := range page.ContainerItems {
			names = append(names, ptr.Value(c.Name))
		}
		return names
	})
}

// blobs lists one level of names at a time, because a container can have millions.
func blobs(ctx context.Context, f *cli.Factory, in, word string) ([]string, error) {
	client, err := f.Container(ref.Blob{Container: in})
	if err != nil {
		return nil, err
	}
	pages := client.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{Prefix: ptr.Optional(word), MaxResults: ptr.Optional(int32(most))})
	return collect(ctx, pages, func(page container.ListBlobsHierarchyResponse) (names []string) {
		for _, p := range page.Segment.BlobPrefixes {
			names = append(names, ptr.Value(p.Name))
		}
		for _, b := range page.Segment.BlobItems {
			names = append(names, ptr.Value(b.Name))
		}
		return names
	})
}

// shard is the name of a shard that is not the first, and so not a counter's.
var shard = regexp.MustCompile(`^[0-9a-f]{8}-.+-[0-9a-z]{8}-[0-9]+$`)

// counters lists blobs, because only their content tells counters from others, without the shards of counters.
func counters(ctx context.Context, f *cli.Factory, in, word string) ([]string, error) {
	names, err := blobs(ctx, f, in, word)
	return slices.DeleteFunc(names, shard.MatchString), err
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

// keys lists the keys of azconc once by their locks, container/once/key.
func keys(ctx context.Context, f *cli.Factory, in, word string) (names []string, err error) {
	const prefix = "once/"
	found, err := locks(ctx, f, in, prefix+url.PathEscape(word))
	for _, lock := range found {
		if key, bad := url.PathUnescape(strings.TrimPrefix(lock, prefix)); bad == nil {
			names = append(names, key)
		}
	}
	return names, err
}

func tables(ctx context.Context, f *cli.Factory, _ string) ([]string, error) {
	service, err := f.TableService()
	if err != nil {
		return nil, err
	}
	return collect(ctx, service.NewListTablesPager(nil), func(page aztables.ListTablesResponse) (names []string) {
		for _, t := range page.Tables {
			names = append(names, ptr.Value(t.Name))
		}
		return names
	})
}

func queues(ctx context.Context, f *cli.Factory, word string) ([]string, error) {
	service, err := f.QueueService()
	if err != nil {
		return nil, err
	}
	pages := service.NewListQueuesPager(&azqueue.ListQueuesOptions{Prefix: ptr.Optional(word), MaxResults: ptr.Optional(int32(most))})
	return collect(ctx, pages, func(page azqueue.ListQueuesResponse) (names []string) {
		for _, q := range page.Queues {
			names = append(names, ptr.Value(q.Name))
		}
		return names
	})
}

func shares(ctx context.Context, f *cli.Factory, word string) ([]string, error) {
	service, err := f.FileService()
	if err != nil {
		return nil, err
	}
	pages := service.NewListSharesPager(&azfiles.ListSharesOptions{Prefix: ptr.Optional(word), MaxResults: ptr.Optional(int32(most))})
	return collect(ctx, pages, func(page azfiles.ListSharesSegmentResponse) (names []string) {
		for _, s := range page.Shares {
			names = append(names, ptr.Value(s.Name))
		}
		return names
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
		for _, d := range page.Segment.Directories {
			names = append(names, word[:slash]+ptr.Value(d.Name)+"/")
		}
		for _, file := range page.Segment.Files {
			names = append(names, word[:slash]+ptr.Value(file.Name))
		}
		return names
	})
}

// needsQuotes reports whether a shell would take name for more than a word. Such names are not offered: shells insert the
// common beginning of several candidates without quotes, and a blob may be called $(reboot).
func needsQuotes(name string) bool {
	return strings.HasPrefix(name, "-") || strings.ContainsFunc(name, func(c rune) bool {
		return c < 0x80 && !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("-_./:=@+,%", c) || c >= 0x80 && !unicode.IsPrint(c)
	})
}
