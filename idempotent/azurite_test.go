package idempotent

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite"
)

// onAzurite is a process of its own on a real server: one whose connections can be cut.
type onAzurite struct {
	account azurite.Account
	wire    *aztest.Injector
	queue   *azqueue.QueueClient
	tables  *aztables.ServiceClient
}

func newOnAzurite(t testing.TB, account azurite.Account) onAzurite {
	t.Helper()
	pool := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(pool.CloseIdleConnections)
	p := onAzurite{account: account, wire: aztest.Inject(&http.Client{Transport: pool}, 1)}
	p.queue = p.client(t, "orders")
	tableCredential, err := aztables.NewSharedKeyCredential(account.Name, account.Key)
	if err != nil {
		t.Fatal(err)
	}
	p.tables, err = aztables.NewServiceClientWithSharedKey(account.TableURL, tableCredential, &aztables.ClientOptions{ClientOptions: policy.ClientOptions{Transport: p.wire, PerRetryPolicies: []policy.Policy{Policy()}}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// client returns the client of a queue.
func (p onAzurite) client(t testing.TB, name string) *azqueue.QueueClient {
	t.Helper()
	credential, err := azqueue.NewSharedKeyCredential(p.account.Name, p.account.Key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azqueue.NewQueueClientWithSharedKeyCredential(p.account.QueueURL+"/"+name, credential, &azqueue.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: p.wire, PerRetryPolicies: []policy.Policy{Policy()}}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
