package blob

import (
	"context"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/ptr"
)

type tagsResult struct {
	Outcome  string            `json:"outcome"`
	Resource string            `json:"resource"`
	Tags     map[string]string `json:"tags"`
}

func (r tagsResult) Text(w io.Writer) { printPairs(w, r.Tags) }

func newTagsCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("tags", "Show and change a blob's index tags",
		newTagsShowCmd(f),
		tagPairs.set(f, &cobra.Command{
			Short: "Replace a blob's index tags",
			Long: `Replace a blob's index tags: those that are not given are removed. To keep them, use azconc blob
tags update.

Tags do not affect the blob's ETag. The write is conditional on every tag that was read still having its value. It also writes
the tag ` + optimistic.LineageKey + `, which records that this write was applied. A predicate cannot require that a
tag is absent: a tag that another tool adds at the same time is lost.`,
			Example: `  azconc blob tags set jobs/state.json state=ready prio=3
  azconc blob tags set jobs/state.json state=done --if-tags "\"state\" = 'ready'"`,
		}),
		tagPairs.update(f, &cobra.Command{
			Short:   "Set some of a blob's index tags and keep the rest",
			Example: "  azconc blob tags update jobs/state.json state=done --remove prio",
		}),
	)
}

func newTagsShowCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show <container/blob>",
		Short:   "Show a blob's index tags",
		Example: "  azconc blob tags show jobs/state.json -o json",
	}
	var conditions optimistic.Conditions
	flags.ReadConditions(cmd.Flags(), &conditions, flags.CondTags|flags.CondLease)
	return cli.On(f, cmd, readable(cmd, ""), f.Blob, func(ctx context.Context, on ref.Blob, client *blob.Client) (cli.Result, error) {
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

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// parseTags reads name=value pairs. Names of tags differ by case, unlike those of metadata.
func parseTags(pairs []string) (map[string]string, error) {
	tags := make(map[string]string, len(pairs))
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, fail.Usagef("tag %q is not name=value", p)
		}
		if _, twice := tags[name]; twice {
			return nil, fail.Usagef("tag %s is given twice", name)
		}
		if strings.EqualFold(name, optimistic.LineageKey) {
			return nil, fail.Usagef("tag %s: the name is reserved for azconc", name)
		}
		for _, text := range []string{name, value} {
			if i := strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune(tagCharacters, r) }); i >= 0 {
				return nil, fail.WithHint(fail.Usagef("tag %q cannot have %q", p, firstRune(text[i:])), "letters, digits, space and + - . / : = _ are allowed")
			}
		}
		if len(name) > 128 || len(value) > 256 {
			return nil, fail.Usagef("tag %s is too long: a name has at most 128 characters, a value 256", name)
		}
		tags[name] = value
	}
	if len(tags) > 10 {
		return nil, fail.Usagef("%d tags are given: a blob can have at most 10", len(tags))
	}
	return tags, nil
}
