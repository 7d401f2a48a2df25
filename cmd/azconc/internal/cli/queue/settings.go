package queue

import (
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/container"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/settings"
)

// acl is the access control list of a queue: stored policies alone, since there is no public access to queues.
var acl = setting[[]settings.AccessPolicy]{
	noun: "queue", path: "queue acl", name: "the stored access policies of a queue",
	target: func(f *cli.Factory, name string) (optimistic.Target[[]settings.AccessPolicy], error) {
		queue, err := f.Queue(name)
		if err != nil {
			return nil, err
		}
		return settings.NewLastWriterWinsQueueACL(queue), nil
	},
	parse: func(data []byte) ([]settings.AccessPolicy, error) {
		var doc aclDocument
		if err := fail.StrictJSON(data, "a list of access policies", &doc); err != nil {
			return nil, err
		}
		return container.ParsePolicies(doc.Policies)
	},
	shown: func(policies []settings.AccessPolicy) any { return aclDocument{container.ShowPolicies(policies)} },
}

type aclDocument struct {
	Policies []container.PolicyShown `json:"policies"`
}

func newACLCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("acl", "Show and change the stored access policies of a queue", acl.showVerb().Command(f), acl.setVerb().Command(f))
}

// properties are the settings of the account's Queue service.
var properties = setting[azqueue.SetPropertiesOptions]{
	path: "queue properties", name: "the settings of the account's Queue service",
	target: func(f *cli.Factory, _ string) (optimistic.Target[azqueue.SetPropertiesOptions], error) {
		service, err := f.QueueService()
		if err != nil {
			return nil, err
		}
		return settings.NewLastWriterWinsQueueService(service), nil
	},
	parse: func(data []byte) (p azqueue.SetPropertiesOptions, err error) {
		return p, fail.StrictJSON(data, "the settings of a Queue service", &p)
	},
	shown: func(p azqueue.SetPropertiesOptions) any { return p },
}

func newPropertiesCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("properties", "Show and change the settings of the account's Queue service", properties.showVerb().Command(f), properties.setVerb().Command(f))
}
