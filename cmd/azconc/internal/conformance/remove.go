package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	blobs "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	filelease "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"
	files "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/pkg/azerr"
)

// resource is a container, table, queue or share.
type resource struct{ kind, name string }

// removalTime bounds the removal, which continues after an interrupt.
const removalTime = 3 * time.Minute

// remove removes everything whose name begins with prefix. It names what it could not remove, and returns how many were
// removed and how many are left.
func (r *rig) remove(prefix string) (removed, left int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), removalTime)
	defer cancel()
	found, err := r.find(ctx, prefix)
	if err != nil {
		fmt.Fprintf(r.stderr, "conformance: error: list what there is: %s\n", r.hide(azerr.Summary(err)))
		left++
	}
	if r.ctx.Err() != nil {
		fmt.Fprintf(r.stderr, "conformance: interrupted: removing %d resources; interrupt again to leave them\n", len(found))
	}
	for _, x := range found {
		if err := r.removeOne(ctx, x); gone(err) {
			removed++
		} else {
			left++
			fmt.Fprintf(r.stderr, "conformance: error: could not remove %s %s: %s\n", x.kind, x.name, r.hide(azerr.Summary(err)))
		}
	}
	if left > 0 {
		fmt.Fprintln(r.stderr, "conformance: hint: scripts/conformance -clean removes what remains")
	}
	return removed, left
}

// removeOne breaks a lease that prevents the deletion, and deletes the resource.
func (r *rig) removeOne(ctx context.Context, x resource) error {
	var err error
	switch x.kind {
	case "container":
		c := r.blobs.NewContainerClient(x.name)
		if _, err = c.Delete(ctx, nil); azerr.Classify(err).Kind == azerr.Held {
			if holder, bad := lease.NewContainerClient(c, nil); bad == nil {
				_, _ = holder.BreakLease(ctx, &lease.ContainerBreakOptions{BreakPeriod: new(int32(0))})
			}
			_, err = c.Delete(ctx, nil)
		}
	case "table":
		_, err = r.tables.DeleteTable(ctx, x.name, nil)
	case "queue":
		_, err = r.queues.NewQueueClient(x.name).Delete(ctx, nil)
	case "share":
		c := r.files.NewShareClient(x.name)
		all := &share.DeleteOptions{DeleteSnapshots: new(share.DeleteSnapshotsOptionTypeInclude)}
		if _, err = c.Delete(ctx, all); azerr.Classify(err).Kind == azerr.Held {
			if holder, bad := filelease.NewShareClient(c, nil); bad == nil {
				_, _ = holder.Break(ctx, &filelease.ShareBreakOptions{BreakPeriod: new(int32(0))})
			}
			_, err = c.Delete(ctx, all)
		}
	}
	return err
}

// gone reports whether a deletion that returned err leaves nothing behind.
func gone(err error) bool {
	return err == nil || azerr.Classify(err).Kind == azerr.NotFound || strings.HasSuffix(azerr.Classify(err).Code, "BeingDeleted")
}

// find lists the resources whose name begins with prefix.
func (r *rig) find(ctx context.Context, prefix string) (found []resource, err error) {
	note := func(kind string, name *string) { found = append(found, resource{kind, *name}) }
	err = each(ctx, r.blobs.NewListContainersPager(&blobs.ListContainersOptions{Prefix: &prefix}), func(page blobs.ListContainersResponse) {
		for _, c := range page.ContainerItems {
			note("container", c.Name)
		}
	})
	if r.tables != nil {
		first := strings.ReplaceAll(prefix, "-", "")
		filter := fmt.Sprintf("TableName ge '%s' and TableName lt '%s~'", first, first)
		err = errors.Join(err, each(ctx, r.tables.NewListTablesPager(&aztables.ListTablesOptions{Filter: &filter}), func(page aztables.ListTablesResponse) {
			for _, x := range page.Tables {
				if strings.HasPrefix(*x.Name, first) {
					note("table", x.Name)
				}
			}
		}))
	}
	if r.queues != nil {
		err = errors.Join(err, each(ctx, r.queues.NewListQueuesPager(&azqueue.ListQueuesOptions{Prefix: &prefix}), func(page azqueue.ListQueuesResponse) {
			for _, q := range page.Queues {
				note("queue", q.Name)
			}
		}))
	}
	if r.files != nil {
		err = errors.Join(err, each(ctx, r.files.NewListSharesPager(&files.ListSharesOptions{Prefix: &prefix}), func(page files.ListSharesSegmentResponse) {
			for _, s := range page.Shares {
				note("share", s.Name)
			}
		}))
	}
	return found, err
}

// each calls do with every page of a list.
func each[P any](ctx context.Context, pager *runtime.Pager[P], do func(page P)) error {
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return err
		}
		do(page)
	}
	return nil
}
