package cli

import (
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

// lastWriterWinsLong is part of the help of every write for which the service has neither a version nor a condition.
const lastWriterWinsLong = `Last writer wins: the service has no versions here and accepts no condition. Two concurrent writers can both succeed although
only one change remains. If a response is lost, azconc reads the current state before it sends the request again.`

var queueNoun = metadataNoun{
	name: "queue", example: "orders", warning: lastWriterWinsLong,
	parse: func(arg string) (blobRef, error) {
		name, err := parseQueue(arg)
		return blobRef{Container: name}, err
	},
	target: func(f *Factory, on blobRef) (optimistic.Target[map[string]string], error) {
		queue, err := f.Queue(on.Container)
		if err != nil {
			return nil, err
		}
		return optimistic.LastWriterWinsQueueMetadata(queue), nil
	},
}

func newQueueMetadataCmd(f *Factory) *cobra.Command { return newNounMetadataCmd(f, queueNoun) }
