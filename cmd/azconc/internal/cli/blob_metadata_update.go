package cli

import (
	"maps"
	"strings"

	"github.com/spf13/cobra"
)

func newBlobMetadataUpdateCmd(f *Factory, runF func(*metadataOptions) error) *cobra.Command {
	cmd, opts := newMetadataCmd(f, runF, func(opts *metadataOptions, metadata map[string]string) {
		maps.Copy(metadata, opts.Metadata)
		for _, name := range opts.Remove {
			delete(metadata, strings.ToLower(name))
		}
	})
	cmd.Use = "update <container/blob> [<name>=<value>]…"
	cmd.Short = "Set some of a blob's metadata and keep the rest"
	cmd.Example = "  azconc blob metadata update jobs/state.json stage=3 --remove owner"
	cmd.Flags().StringArrayVar(&opts.Remove, "remove", nil, "`name` to remove; may be repeated")
	return cmd
}
