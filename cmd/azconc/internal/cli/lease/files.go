package lease

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pessimistic"
)

// leasedInFiles implements leased for Azure Files, which has no conditions.
func leasedInFiles(f *cli.Factory, noun leaseNoun, on ref.File, id string) (leased, error) {
	if noun == "share" {
		client, err := f.Share(on)
		if err != nil {
			return nil, err
		}
		l, err := lease.NewShareClient(client, &lease.ShareClientOptions{LeaseID: flags.Optional(id)})
		return leasedShare{l, client}, err
	}
	client, err := f.File(on)
	if err != nil {
		return nil, err
	}
	l, err := lease.NewFileClient(client, &lease.FileClientOptions{LeaseID: flags.Optional(id)})
	return leasedFile{l, client}, err
}

type leasedFile struct {
	lease *lease.FileClient
	file  *file.Client
}

// Acquire also records the holder, since the service does not, and the lease does not expire.
func (l leasedFile) Acquire(ctx context.Context, _ int32, _ optimistic.Conditions) (azcore.ETag, error) {
	r, err := l.lease.Acquire(ctx, nil)
	if err != nil {
		return "", err
	}
	if _, err := pessimistic.Heartbeat(ctx, l.file, cli.Deref(r.LeaseID), true); err != nil {
		_, _ = l.lease.Release(ctx, nil)
		return "", err
	}
	return cli.Deref(r.ETag), nil
}

func (l leasedFile) renew(ctx context.Context, _ optimistic.Conditions) (string, error) {
	id := cli.Deref(l.lease.LeaseID())
	_, err := pessimistic.Heartbeat(ctx, l.file, id, false)
	return id, err
}

func (l leasedFile) change(ctx context.Context, to string, _ optimistic.Conditions) error {
	_, err := l.lease.Change(ctx, to, nil)
	return err
}

func (l leasedFile) release(ctx context.Context, _ optimistic.Conditions) error {
	_, err := l.lease.Release(ctx, nil)
	return err
}

func (l leasedFile) break_(ctx context.Context, _ *int32, _ optimistic.Conditions) (int32, error) {
	_, err := l.lease.Break(ctx, nil)
	return 0, err
}

func (l leasedFile) Show(ctx context.Context) (Shown, error) {
	seen, err := pessimistic.Look(ctx, pessimistic.File(l.file), nil)
	return LookedAt(seen), err
}

type leasedShare struct {
	lease *lease.ShareClient
	share *share.Client
}

func (l leasedShare) Acquire(ctx context.Context, seconds int32, _ optimistic.Conditions) (azcore.ETag, error) {
	r, err := l.lease.Acquire(ctx, seconds, nil)
	return cli.Deref(r.ETag), err
}

func (l leasedShare) renew(ctx context.Context, _ optimistic.Conditions) (string, error) {
	r, err := l.lease.Renew(ctx, nil)
	return cli.Deref(r.LeaseID), err
}

func (l leasedShare) change(ctx context.Context, to string, _ optimistic.Conditions) error {
	_, err := l.lease.Change(ctx, to, nil)
	return err
}

func (l leasedShare) release(ctx context.Context, _ optimistic.Conditions) error {
	_, err := l.lease.Release(ctx, nil)
	return err
}

func (l leasedShare) break_(ctx context.Context, period *int32, _ optimistic.Conditions) (int32, error) {
	r, err := l.lease.Break(ctx, &lease.ShareBreakOptions{BreakPeriod: period})
	return cli.Deref(r.LeaseTime), err
}

func (l leasedShare) Show(ctx context.Context) (Shown, error) {
	seen, err := pessimistic.Look(ctx, pessimistic.Share(l.share), nil)
	return LookedAt(seen), err
}

func LookedAt(seen pessimistic.Observation) Shown {
	shown := Shown{State: string(seen.State), Status: "unlocked", ETag: string(seen.ETag)}
	if seen.State == pessimistic.StateLeased || seen.State == pessimistic.StateBreaking {
		shown.Status, shown.Duration = "locked", "fixed"
		if seen.Infinite {
			shown.Duration = "infinite"
		}
		holder := seen.Holder()
		shown.Owner, shown.Since, shown.Heard = holder.Name, show.Time(holder.Since), show.Time(holder.Heard)
	}
	return shown
}
