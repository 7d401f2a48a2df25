package queue

import (
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/container"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/settings"
)

// lastWriterWinsLong is part of the help of every write for which the service has neither a version nor a condition.
const lastWriterWinsLong = `Last writer wins: the service has no versions here and accepts no condition. Two concurrent writers can both succeed although
only one change remains. If a response is lost, azconc reads the current state before it sends the request again.`

var noun = container.MetadataNoun{
	Name: "queue", Example: "orders", Warning: lastWriterWinsLong,
	Parse: func(arg string) (ref.Blob, error) {
		name, err := parseQueue(arg)
		return ref.Blob{Container: name}, err
	},
	Target: func(f *cli.Factory, on ref.Blob) (optimistic.Target[map[string]string], error) {
		queue, err := f.Queue(on.Container)
		if err != nil {
			return nil, err
		}
		return settings.NewLastWriterWinsQueueMetadata(queue), nil
	},
}

func newMetadataCmd(f *cli.Factory) *cobra.Command { return container.NewMetadataCmd(f, noun) }
