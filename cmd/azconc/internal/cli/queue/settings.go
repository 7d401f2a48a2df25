package queue

import (
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/container"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/noun"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/settings"
)

// lastWriterWinsLong is part of the help of every write for which the service has neither a version nor a condition.
const lastWriterWinsLong = `Last writer wins: the service has no versions here and accepts no condition. Two concurrent writers can both succeed although
only one change remains. If a response is lost, azconc reads the current state before it sends the request again.`

// parseRef is ParseName in the form of the verbs that nouns share.
func parseRef(arg string) (ref.Blob, error) {
	name, err := ParseName(arg)
	return ref.Blob{Container: name}, err
}

func newMetadataCmd(f *cli.Factory) *cobra.Command {
	return noun.Pairs{
		Noun: "queue", Arg: "<queue>", Example: "orders", Long: lastWriterWinsLong, Parse: parseRef,
		Open: func(on ref.Blob) (optimistic.Target[map[string]string], error) {
			queue, err := f.Queue(on.Container)
			return settings.NewLastWriterWinsQueueMetadata(queue), err
		},
	}.NewCmd(f, nil)
}

// newACLCmd returns the verbs of a queue's access control list: stored policies alone, since there is no public access to queues.
func newACLCmd(f *cli.Factory) *cobra.Command {
	return noun.Document[[]settings.AccessPolicy]{
		Path: "queue acl", Name: "the stored access policies of a queue", Arg: "<queue>", Example: "orders", Long: lastWriterWinsLong, Parse: parseRef,
		Open: func(on ref.Blob) (optimistic.Target[[]settings.AccessPolicy], error) {
			queue, err := f.Queue(on.Container)
			return settings.NewLastWriterWinsQueueACL(queue), err
		},
		Decode: func(data []byte) ([]settings.AccessPolicy, error) {
			var doc aclDocument
			if err := fail.StrictJSON(data, "a list of access policies", &doc); err != nil {
				return nil, err
			}
			return container.ParsePolicies(doc.Policies)
		},
		Encode: func(policies []settings.AccessPolicy) any { return aclDocument{container.ShowPolicies(policies)} },
	}.NewCmd(f)
}

type aclDocument struct {
	Policies []container.PolicyShown `json:"policies"`
}

// newPropertiesCmd returns the verbs of the settings of the account's Queue service.
func newPropertiesCmd(f *cli.Factory) *cobra.Command {
	return noun.Document[azqueue.SetPropertiesOptions]{
		Path: "queue properties", Name: "the settings of the account's Queue service", Long: lastWriterWinsLong,
		Open: func(ref.Blob) (optimistic.Target[azqueue.SetPropertiesOptions], error) {
			service, err := f.QueueService()
			return settings.NewLastWriterWinsQueueService(service), err
		},
		Decode: func(data []byte) (p azqueue.SetPropertiesOptions, err error) {
			return p, fail.StrictJSON(data, "the settings of a Queue service", &p)
		},
		Encode: func(p azqueue.SetPropertiesOptions) any { return p },
	}.NewCmd(f)
}
