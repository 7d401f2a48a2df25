package cli

import (
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/optimistic"
)

// TableService returns the client of the account's Table service.
func (f *Factory) TableService() (*aztables.ServiceClient, error) {
	opts := &aztables.ClientOptions{ClientOptions: f.ClientOptions()}
	c, err := f.connectionTo(tableService)
	if err != nil {
		return nil, err
	}
	endpoint := strings.TrimSuffix(c.endpoint[tableService], "/")
	if endpoint == "" {
		return nil, noAccount()
	}
	switch {
	case c.key != "":
		cred, err := aztables.NewSharedKeyCredential(c.account, c.key)
		if err != nil {
			return nil, Usagef("the account key is not usable")
		}
		return aztables.NewServiceClientWithSharedKey(endpoint, cred, opts)
	case c.sas != "":
		return aztables.NewServiceClientWithNoCredential(endpoint+"/?"+c.sas, opts)
	default:
		cred, err := f.tokenCredential()
		if err != nil {
			return nil, err
		}
		return aztables.NewServiceClient(endpoint, cred, opts)
	}
}

// Entity returns r's entity as a target that keeps every type.
func (f *Factory) Entity(r TableRef) (optimistic.Entity[optimistic.Properties], error) {
	s, err := f.TableService()
	if err != nil {
		return optimistic.Entity[optimistic.Properties]{}, err
	}
	return optimistic.TableEntity[optimistic.Properties](s.NewClient(r.Table), r.Partition, r.Row), nil
}
