package cli

import (
	"maps"

	"github.com/spf13/cobra"
)

func newBlobTagsUpdateCmd(f *Factory, runF func(*tagsOptions) error) *cobra.Command {
	cmd, opts := newTagsCmd(f, runF, func(opts *tagsOptions, tags map[string]string) {
		maps.Copy(tags, opts.Tags)
		for _, name := range opts.Remove {
			delete(tags, name)
		}
	})
	cmd.Use = "update <container/blob> [<name>=<value>]…"
	cmd.Short = "Set some of a blob's index tags and keep the rest"
	cmd.Example = "  azconc blob tags update jobs/state.json state=done --remove prio"
	cmd.Flags().StringArrayVar(&opts.Remove, "remove", nil, "`name` to remove; may be repeated")
	return cmd
}
