package main

import (
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/azurite"
)

// site is a way to the service: through the faulty network for workers, directly for the judge.
type site struct {
	account azurite.Account
	http    *http.Client
	calls   []policy.Policy // of blob clients
}

func newSite(a azurite.Account) *site {
	return &site{account: a, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}}
}

func (s *site) close() { s.http.CloseIdleConnections() }

func (s *site) options() policy.ClientOptions {
	return policy.ClientOptions{Transport: s.http, PerCallPolicies: s.calls}
}

func (s *site) container(name string) *container.Client {
	credential, err := container.NewSharedKeyCredential(s.account.Name, s.account.Key)
	must(err)
	c, err := container.NewClientWithSharedKeyCredential(s.account.BlobURL+"/"+name, credential, &container.ClientOptions{ClientOptions: s.options()})
	must(err)
	return c
}

func (s *site) table(name string) *aztables.Client {
	credential, err := aztables.NewSharedKeyCredential(s.account.Name, s.account.Key)
	must(err)
	o := s.options()
	o.PerCallPolicies = nil
	c, err := aztables.NewClientWithSharedKey(s.account.TableURL+"/"+name, credential, &aztables.ClientOptions{ClientOptions: o})
	must(err)
	return c
}

func (s *site) queue(name string) *azqueue.QueueClient {
	credential, err := azqueue.NewSharedKeyCredential(s.account.Name, s.account.Key)
	must(err)
	o := s.options()
	o.PerCallPolicies, o.PerRetryPolicies = nil, []policy.Policy{idempotent.Policy()}
	c, err := azqueue.NewQueueClientWithSharedKeyCredential(s.account.QueueURL+"/"+name, credential, &azqueue.ClientOptions{ClientOptions: o})
	must(err)
	return c
}

// through returns the account behind other addresses.
func through(a azurite.Account, blob, queue, table string) azurite.Account {
	path := "/" + a.Name
	a.BlobURL, a.QueueURL, a.TableURL = strings.TrimSuffix(blob, "/")+path, strings.TrimSuffix(queue, "/")+path, strings.TrimSuffix(table, "/")+path
	return a
}

// must ends the process for what only a mistake of this program can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
