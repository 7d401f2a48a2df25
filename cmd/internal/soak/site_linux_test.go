package soak

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
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

func (s *site) container(name string) *container.Client {
	o := policy.ClientOptions{Transport: s.http, PerCallPolicies: s.calls}
	c, err := container.NewClientFromConnectionString(s.account.ConnectionString(), name, &container.ClientOptions{ClientOptions: o})
	must(err)
	return c
}

func (s *site) table(name string) *aztables.Client {
	o := policy.ClientOptions{Transport: s.http}
	c, err := aztables.NewServiceClientFromConnectionString(s.account.ConnectionString(), &aztables.ClientOptions{ClientOptions: o})
	must(err)
	return c.NewClient(name)
}

func (s *site) queue(name string) *azqueue.QueueClient {
	o := policy.ClientOptions{Transport: s.http, PerRetryPolicies: []policy.Policy{idempotent.Policy()}}
	c, err := azqueue.NewQueueClientFromConnectionString(s.account.ConnectionString(), name, &azqueue.ClientOptions{ClientOptions: o})
	must(err)
	return c
}

// What the workers use. Each queue has another one for poison messages.
var (
	boxes    = []string{"tallies", "fenced", "locks", "turns", "onces"}
	tableSet = []string{"tallies", "fenced", "markers", payments, "onces"}
	queues   = []string{orders, payments}
)

// prepare creates what the workers need, before they start.
func (s *site) prepare(ctx context.Context) error {
	var err error
	create := func(_ any, failed error) { err = errors.Join(err, failed) }
	for _, name := range boxes {
		create(s.container(name).Create(ctx, nil))
	}
	for _, name := range tableSet {
		create(s.table(name).CreateTable(ctx, nil))
	}
	for _, name := range queues {
		create(s.queue(name).Create(ctx, nil))
		create(s.queue(name+poisonSuffix).Create(ctx, nil))
	}
	return err
}

// proven is how workers write: the network repeats requests on the loopback interface, where conflicts are believed otherwise.
var proven = optimistic.SendOptions{ConfirmConflicts: optimistic.ConfirmAlways}

// stored returns what a target has: the zero value if there is nothing.
func stored[T any](ctx context.Context, target optimistic.Target[T]) (value T, err error) {
	v, err := optimistic.Read(ctx, target, nil)
	switch {
	case err == nil:
		return v.Value, nil
	case errors.Is(err, optimistic.ErrNotFound):
		return value, nil
	}
	return value, err
}

// changeRow changes an entity, which need not exist, in a transaction.
func changeRow[T any](ctx context.Context, tx *tables.Tx, row string, change func(context.Context, *T) error) error {
	var value T
	if _, err := tx.Get(ctx, row, &value); err != nil {
		return err
	}
	if err := change(ctx, &value); err != nil {
		return err
	}
	return tx.Put(row, value)
}

// must ends the process for what only a mistake of this program can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// service is an Azurite with its data on disk, which can be ended and started again.
type service struct {
	options azurite.Options
	server  *azurite.Server
	turn    sync.Mutex // held by a restart
}

func startService(ctx context.Context, dir string) (s *service, err error) {
	s = &service{options: azurite.Options{Location: dir}}
	if s.server, err = azurite.Start(ctx, &s.options); err != nil {
		return nil, err
	}
	a := s.server.Account()
	for raw, port := range map[string]*int{a.BlobURL: &s.options.BlobPort, a.QueueURL: &s.options.QueuePort, a.TableURL: &s.options.TablePort} {
		u, err := url.Parse(raw)
		must(err)
		*port, err = strconv.Atoi(u.Port())
		must(err)
	}
	return s, nil
}

// restart ends the service by SIGTERM in the midst of its requests, and starts it on the same folder and ports. Not by
// SIGKILL: Azurite writes its data to disk some seconds after it has acknowledged them, so that it would lose writes
// that a real account never loses. It does forget all leases when it is restarted, as no account does: for
// their holders it is as if another client had broken them.
func (s *service) restart(ctx context.Context) (err error) {
	if err := s.server.Stop(); err != nil {
		return err
	}
	s.server, err = azurite.Start(ctx, &s.options)
	return err
}
