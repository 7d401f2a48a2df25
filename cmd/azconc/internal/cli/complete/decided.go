package complete

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// free are the placeholders for which nothing is offered: only the user knows what belongs there, or it is a secret.
var free = strings.Fields("copy-id message-id n id ids code ETag etag URL address bytes cron expression faults image key line name name=value names " +
	"number offset path=value predicate receipt text time token zone duration int int32 int64 uint64 float header")

// freeFlags are the flags whose help has no placeholder and no choice, and for which nothing is offered.
var freeFlags = strings.Fields("cache-control content-disposition content-encoding content-language content-md5 content-type connection-string duration owner prefix")

// fileKinds are the placeholders for which a shell offers local files.
var fileKinds = []string{"file", "path", "directory", "command"}

// Undecided returns the arguments, and the flags with a value, of all commands below root about which this package does not say what
// is offered for them: names, words, local files or nothing.
func Undecided(root *cobra.Command) (all []string) {
	decided := func(kind string) bool {
		return lists[kind] != nil || slices.Contains(fileKinds, kind) || slices.Contains(free, kind)
	}
	for _, cmd := range append(root.Commands(), root) {
		if cmd != root && cmd.HasSubCommands() {
			all = append(all, Undecided(cmd)...)
			continue
		}
		if !cmd.HasSubCommands() && cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && !cmd.IsAdditionalHelpTopicCommand() {
			usage, _, _ := strings.Cut(cmd.Use, "-- <command>")
			for _, kind := range positional(usage) {
				if !decided(kind) {
					all = append(all, cmd.CommandPath()+" <"+kind+">")
				}
			}
		}
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			kind, _ := pflag.UnquoteUsage(flag)
			known := flag.Value.Type() == "bool" || choice.MatchString(flag.Usage) || kind != "string" && decided(kind)
			if !known && !slices.Contains(freeFlags, flag.Name) {
				all = append(all, cmd.CommandPath()+" --"+flag.Name+" "+kind)
			}
		})
	}
	return all
}
