package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

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
type resource struct{ service, name string }

func (x resource) String() string {
	return map[string]string{"blob": "container", "table": "table", "queue": "queue", "file": "share"}[x.service] + " " + x.name
}

// removalTime bounds the removal, which continues after an interrupt.
const removalTime = 3 * time.Minute

// remove removes everything that this run has created, and reports what it could not remove. It returns the number of
// those.
func (r *rig) remove(out *report, stderr io.Writer) int {
	r.mu.Lock()
	created := slices.Clone(r.created)
	r.mu.Unlock()
	if r.ctx.Err() != nil {
		fmt.Fprintf(stderr, "conformance: interrupted: removing %d resources; interrupt again to leave them\n", len(created))
	}
	ctx, cancel := context.WithTimeout(context.WithValue(context.WithoutCancel(r.ctx), removing{}, true), removalTime)
	defer cancel()
	return r.removeThese(ctx, created, out, stderr)
}

// removeAll removes everything whose name begins with prefix, including leftovers of other runs.
func (r *rig) removeAll(ctx context.Context, prefix string, out *report, stderr io.Writer) int {
	found, err := r.find(ctx, prefix)
	if err != nil {
		fmt.Fprintf(stderr, "conformance: error: list what there is: %s\n", out.hide(azerr.Summary(err)))
		return exitDifferent
	}
	left := r.removeThese(ctx, found, out, stderr)
	fmt.Fprintf(out.out, "%d removed, %d left\n", len(found)-left, left)
	if left > 0 {
		return exitDifferent
	}
	return exitOK
}

func (r *rig) removeThese(ctx context.Context, those []resource, out *report, stderr io.Writer) int {
	var mu sync.Mutex
	var group sync.WaitGroup
	left := 0
	free := make(chan struct{}, 8)
	for _, x := range those {
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			err := r.removeOne(ctx, x)
			if gone(err) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			left++
			fmt.Fprintf(stderr, "conformance: error: could not remove %s: %s\n", x, out.hide(azerr.Summary(err)))
		})
	}
	group.Wait()
	if left > 0 {
		fmt.Fprintln(stderr, "conformance: hint: scripts/conformance -clean removes what remains")
	}
	return left
}

// removeOne breaks a lease that prevents the deletion, and deletes the resource.
func (r *rig) removeOne(ctx context.Context, x resource) error {
	var err error
	switch x.service {
	case "blob":
		c := r.plain.blobs.NewContainerClient(x.name)
		if _, err = c.Delete(ctx, nil); azerr.Classify(err).Kind == azerr.Held {
			if holder, bad := lease.NewContainerClient(c, nil); bad == nil {
				_, _ = holder.BreakLease(ctx, &lease.ContainerBreakOptions{BreakPeriod: new(int32(0))})
			}
			_, err = c.Delete(ctx, nil)
		}
	case "table":
		_, err = r.plain.tables.DeleteTable(ctx, x.name, nil)
	case "queue":
		_, err = r.plain.queues.NewQueueClient(x.name).Delete(ctx, nil)
	case "file":
		c := r.plain.files.NewShareClient(x.name)
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
func (r *rig) find(ctx context.Context, prefix string) ([]resource, error) {
	var found []resource
	for pager := r.plain.blobs.NewListContainersPager(&blobs.ListContainersOptions{Prefix: &prefix}); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, c := range page.ContainerItems {
			found = append(found, resource{"blob", *c.Name})
		}
	}
	if r.plain.tables != nil {
		first := strings.ReplaceAll(prefix, "-", "")
		filter := fmt.Sprintf("TableName ge '%s' and TableName lt '%s~'", first, first)
		for pager := r.plain.tables.NewListTablesPager(&aztables.ListTablesOptions{Filter: &filter}); pager.More(); {
			page, err := pager.NextPage(ctx)
			if err != nil {
				return nil, err
			}
			for _, x := range page.Tables {
				if strings.HasPrefix(*x.Name, first) {
					found = append(found, resource{"table", *x.Name})
				}
			}
		}
	}
	if r.plain.queues != nil {
		for pager := r.plain.queues.NewListQueuesPager(&azqueue.ListQueuesOptions{Prefix: &prefix}); pager.More(); {
			page, err := pager.NextPage(ctx)
			if err != nil {
				return nil, err
			}
			for _, q := range page.Queues {
				found = append(found, resource{"queue", *q.Name})
			}
		}
	}
	if r.plain.files != nil {
		for pager := r.plain.files.NewListSharesPager(&files.ListSharesOptions{Prefix: &prefix}); pager.More(); {
			page, err := pager.NextPage(ctx)
			if err != nil {
				return nil, err
			}
			for _, s := range page.Shares {
				found = append(found, resource{"file", *s.Name})
			}
		}
	}
	return found, nil
}
