package blob

import (
	"context"
	"encoding/base64"
	"io"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/noun"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/ptr"
)

// headerFields are the flags of headers set, and the field that each sets.
var headerFields = []struct {
	flag, name string
	field      func(*blobs.HTTPHeaders) *string
}{
	{"content-type", "Content-Type", func(h *blobs.HTTPHeaders) *string { return &h.ContentType }},
	{"content-encoding", "Content-Encoding", func(h *blobs.HTTPHeaders) *string { return &h.ContentEncoding }},
	{"content-language", "Content-Language", func(h *blobs.HTTPHeaders) *string { return &h.ContentLanguage }},
	{"content-disposition", "Content-Disposition", func(h *blobs.HTTPHeaders) *string { return &h.ContentDisposition }},
	{"content-md5", "Content-MD5, in base64,", func(h *blobs.HTTPHeaders) *string { return &h.ContentMD5 }},
	{"cache-control", "Cache-Control", func(h *blobs.HTTPHeaders) *string { return &h.CacheControl }},
}

func newHeadersSetCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set <container/blob> --<header> <value>…",
		Short: "Set some of a blob's HTTP headers and keep the rest",
		Long: `Set some of a blob's HTTP headers and keep the rest. An empty value removes a header.

The service replaces all headers at once, so azconc reads them and writes them back on condition that the blob has not
changed; with --if-match a conflict is final. Headers have no room for an id: if a response is lost and the blob has changed
since, the change may be this write or another, and the exit code is 5. It is safe to set the headers again.`,
		Example: `  azconc blob headers set site/app.js --cache-control 'max-age=3600' --content-type text/javascript
  azconc blob headers set site/app.js --content-encoding ''`,
	}
	set := cmd.Flags()
	values := make([]string, len(headerFields))
	for i, h := range headerFields {
		flags.Header(set, &values[i], h.flag, h.name+" to serve the blob with")
		flags.AllowEmpty(set, h.flag)
	}
	var o optimistic.UpdateOptions
	flags.MaxAttempts(set, &o)
	flags.WriteConditions(set, &o.Conditions, flags.CondAll)
	given := map[string]string{} // by flag; an empty value removes the header
	parse := cli.Checked(ref.ParseWritable, func() error {
		for i, h := range headerFields {
			if set.Changed(h.flag) {
				given[h.flag] = values[i]
			}
		}
		if len(given) == 0 {
			return fail.WithHint(fail.Usagef("no header is given"), "give a header, as in --content-type text/plain")
		}
		if sum, err := base64.StdEncoding.DecodeString(given["content-md5"]); err != nil || len(sum) != 0 && len(sum) != 16 {
			return fail.Usagef("--content-md5 is not an MD5 sum in base64")
		}
		return nil
	})
	return cli.On(f, cmd, parse, f.Blob, func(ctx context.Context, on ref.Blob, client *blob.Client) (cli.Result, error) {
		o.Hooks = f.Monitor.Hooks()
		r, err := optimistic.Update(ctx, blobs.NewHeaders(client), func(_ context.Context, headers *blobs.HTTPHeaders) error {
			for _, h := range headerFields {
				if value, ok := given[h.flag]; ok {
					*h.field(headers) = value
				}
			}
			return nil
		}, &o)
		return cli.Written(on, "updated", r, change.UpdateHint(err, &o))
	})
}

type tagsResult struct {
	Outcome  string            `json:"outcome"`
	Resource string            `json:"resource"`
	Tags     map[string]string `json:"tags"`
}

func (r tagsResult) Text(w io.Writer) { noun.PrintPairs(w, r.Tags) }

// newTagsCmd returns the verbs of index tags. Conditions on the blob's version do not apply to them.
func newTagsCmd(f *cli.Factory) *cobra.Command {
	return noun.Pairs{
		Noun: "blob", Arg: "<container/blob>", Example: "jobs/state.json", Parse: ref.ParseWritable, Conditions: flags.CondTags | flags.CondLease,
		Long: `Tags do not affect the blob's ETag. The write is conditional on every tag that was read still having its value. It also writes
the tag ` + optimistic.LineageKey + `, which records that this write was applied. A predicate cannot require that a
tag is absent: a tag that another tool adds at the same time is lost.`,
		Open: func(on ref.Blob) (optimistic.Target[map[string]string], error) {
			client, err := f.Blob(on)
			return blobs.NewTags(client), err
		},
		Tags: parseTags,
	}.NewCmd(f, newTagsShowCmd(f))
}

func newMetadataCmd(f *cli.Factory) *cobra.Command {
	show := properties(f, &cobra.Command{
		Use:     "show <container/blob>",
		Short:   "Show a blob's metadata",
		Example: "  azconc blob metadata show jobs/state.json -o json",
	}, func(on ref.Blob, p blob.GetPropertiesResponse) cli.Result {
		return noun.Metadata{Outcome: "found", Resource: on.String(), ETag: string(ptr.Value(p.ETag)), Metadata: cli.OwnMetadata(p.Metadata)}
	})
	return noun.Pairs{
		Noun: "blob", Arg: "<container/blob>", Example: "jobs/state.json", Parse: ref.ParseWritable, Conditions: flags.CondAll,
		Open: func(on ref.Blob) (optimistic.Target[map[string]string], error) {
			client, err := f.Blob(on)
			return blobs.NewMetadata(client), err
		},
	}.NewCmd(f, show)
}

func newTagsShowCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show <container/blob>",
		Short:   "Show a blob's index tags",
		Example: "  azconc blob tags show jobs/state.json -o json",
	}
	var conditions optimistic.Conditions
	flags.ReadConditions(cmd.Flags(), &conditions, flags.CondTags|flags.CondLease)
	return cli.On(f, cmd, ref.ParseBlob, f.Blob, func(ctx context.Context, on ref.Blob, client *blob.Client) (cli.Result, error) {
		resp, err := client.GetTags(ctx, &blob.GetTagsOptions{BlobAccessConditions: flags.BlobAccess(conditions)})
		tags := map[string]string{}
		for _, t := range resp.BlobTagSet {
			if name := ptr.Value(t.Key); name != optimistic.LineageKey {
				tags[name] = ptr.Value(t.Value)
			}
		}
		return tagsResult{Outcome: "found", Resource: on.String(), Tags: tags}, err
	})
}

// tagCharacters are the characters that names and values may have (REST: "Set Blob Tags").
const tagCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 +-./:=_"

// parseTags reads name=value pairs. Names of tags differ by case, unlike those of metadata.
func parseTags(pairs []string) (map[string]string, error) {
	if len(pairs) > 10 {
		return nil, fail.Usagef("%d tags are given: a blob can have at most 10", len(pairs))
	}
	return flags.ParsePairs("tag", pairs, func(name, value string) (string, error) {
		if strings.EqualFold(name, optimistic.LineageKey) {
			return "", fail.Usagef("tag %s: the name is reserved for azconc", name)
		}
		for _, c := range name + value {
			if !strings.ContainsRune(tagCharacters, c) {
				return "", fail.WithHint(fail.Usagef("tag %q cannot have %q", name+"="+value, c), "letters, digits, space and + - . / : = _ are allowed")
			}
		}
		if len(name) > 128 || len(value) > 256 {
			return "", fail.Usagef("tag %s is too long: a name has at most 128 characters, a value 256", name)
		}
		return name, nil
	})
}
