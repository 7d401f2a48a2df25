package cli

import (
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azaccount"
)

// TableService returns the client of the account's Table service.
func (f *Factory) TableService() (*aztables.ServiceClient, error) {
	opts := &aztables.ClientOptions{ClientOptions: f.ClientOptions()}
	a, err := f.accountOf(azaccount.Table)
	if err != nil {
		return nil, err
	}
	c, err := a.TableService(opts)
	return c, connectionError(err)
}

// Entity returns r's entity as a target that keeps every type.
func (f *Factory) Entity(r TableRef) (optimistic.Entity[optimistic.Properties], error) {
	s, err := f.TableService()
	if err != nil {
		return optimistic.Entity[optimistic.Properties]{}, err
	}
	return optimistic.TableEntity[optimistic.Properties](s.NewClient(r.Table), r.Partition, r.Row), nil
}
