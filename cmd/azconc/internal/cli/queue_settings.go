package cli

import (
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

// queueACL is the access control list of a queue: stored policies alone, since there is no public access to queues.
var queueACL = setting[[]optimistic.AccessPolicy]{
	noun: "queue", path: "queue acl", name: "the stored access policies of a queue",
	target: func(f *Factory, name string) (optimistic.Target[[]optimistic.AccessPolicy], error) {
		queue, err := f.Queue(name)
		if err != nil {
			return nil, err
		}
		return optimistic.LastWriterWinsQueueACL(queue), nil
	},
	parse: func(data []byte) ([]optimistic.AccessPolicy, error) {
		var doc queueACLDocument
		if err := strictJSON(data, "a list of access policies", &doc); err != nil {
			return nil, err
		}
		return parsePolicies(doc.Policies)
	},
	shown: func(policies []optimistic.AccessPolicy) any { return queueACLDocument{showPolicies(policies)} },
}

type queueACLDocument struct {
	Policies []policyShown `json:"policies"`
}

func newQueueACLCmd(f *Factory) *cobra.Command {
	return newGroupCmd("acl", "Show and change the stored access policies of a queue", queueACL.showCmd(f, nil), queueACL.setCmd(f, nil))
}

// queueProperties are the settings of the account's Queue service.
var queueProperties = setting[azqueue.SetPropertiesOptions]{
	path: "queue properties", name: "the settings of the account's Queue service",
	target: func(f *Factory, _ string) (optimistic.Target[azqueue.SetPropertiesOptions], error) {
		service, err := f.QueueService()
		if err != nil {
			return nil, err
		}
		return optimistic.LastWriterWinsQueueService(service), nil
	},
	parse: func(data []byte) (p azqueue.SetPropertiesOptions, err error) {
		return p, strictJSON(data, "the settings of a Queue service", &p)
	},
	shown: func(p azqueue.SetPropertiesOptions) any { return p },
}

func newQueuePropertiesCmd(f *Factory) *cobra.Command {
	return newGroupCmd("properties", "Show and change the settings of the account's Queue service", queueProperties.showCmd(f, nil), queueProperties.setCmd(f, nil))
}
