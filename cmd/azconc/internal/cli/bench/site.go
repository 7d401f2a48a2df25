package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/pkg/azerr"
)

// site is what was created in the account, and the meter of the present cell.
type site struct {
	f       *cli.Factory
	in      ref.Blob // the container; the queue has its name, and without hyphens the table
	created []resource
	meter   atomic.Pointer[meter]
}

// resource is something that a site has created: a container, a table or a queue.
type resource struct {
	kind, name string
	remove     func(context.Context) error
}

// newSite returns a site with a name of its own. It sends nothing.
func newSite(f *cli.Factory) *site {
	var id [6]byte
	_, _ = rand.Read(id[:]) // never fails
	s := &site{f: f, in: ref.Blob{Container: "azconc-bench-" + hex.EncodeToString(id[:])}}
	f.OnRequest = s.count
	return s
}

// meter counts the requests of a cell, and ends it when their bound is reached.
type meter struct {
	sent  atomic.Int64
	bound int64
	full  func() // is called once
}

func (s *site) count() {
	if m := s.meter.Load(); m != nil && m.sent.Add(1) == m.bound {
		m.full()
	}
}

// blob returns the blob of a cell.
func (s *site) blob(c cell) (*blockblob.Client, error) {
	return s.f.BlockBlob(ref.Blob{Container: s.in.Container, Blob: c.name()})
}

func (s *site) tableName() string { return strings.ReplaceAll(s.in.Container, "-", "") }

func (s *site) table() (*aztables.Client, error) {
	service, err := s.f.TableService()
	if err != nil {
		return nil, err
	}
	return service.NewClient(s.tableName()), nil
}

// create creates the container, the table or the queue, unless it has done so before. After an error remove deletes what may have
// been created.
func (s *site) create(ctx context.Context, kind string) (err error) {
	if slices.ContainsFunc(s.created, func(r resource) bool { return r.kind == kind }) {
		return nil
	}
	r, create := resource{kind: kind, name: s.in.Container}, func() error { return nil }
	switch kind {
	case "container":
		c, failed := s.f.Container(s.in)
		err = failed
		create = func() error { _, err := c.Create(ctx, nil); return err }
		r.remove = func(ctx context.Context) error { _, err := c.Delete(ctx, nil); return err }
	case "queue":
		c, failed := s.f.Queue(s.in.Container)
		err = failed
		create = func() error { _, err := c.Create(ctx, nil); return err }
		r.remove = func(ctx context.Context) error { _, err := c.Delete(ctx, nil); return err }
	case "table":
		c, failed := s.table()
		err, r.name = failed, s.tableName()
		create = func() error { _, err := c.CreateTable(ctx, nil); return err }
		r.remove = func(ctx context.Context) error { _, err := c.Delete(ctx, nil); return err }
	}
	if err != nil {
		return err
	}
	s.created = append(s.created, r)
	err = create()
	if azerr.Has(err, "ContainerAlreadyExists", "QueueAlreadyExists", "TableAlreadyExists") { // a request that was sent twice
		return nil
	}
	return err
}

// remove deletes everything that was created, even if ctx has ended, within half a minute, and names what may be left.
func (s *site) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	for _, r := range s.created {
		if err := r.remove(ctx); err != nil && azerr.Absent(err) == "" {
			s.f.Notef("left: %s %s, since %s; azconc %[1]s delete %[2]s deletes it", r.kind, r.name, fail.Message(err, fail.Judge(err), "bench", ""))
		}
	}
}
