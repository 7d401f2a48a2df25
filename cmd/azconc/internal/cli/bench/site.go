package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/pkg/azerr"
)

// site is a container of its own, and the meter of the present cell.
type site struct {
	f     *cli.Factory
	in    ref.Blob
	box   *container.Client // nil until it may have been created
	meter atomic.Pointer[meter]
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

// create creates the container, unless it has done so before. After an error remove deletes what may have been created.
func (s *site) create(ctx context.Context) (err error) {
	if s.box != nil {
		return nil
	}
	if s.box, err = s.f.Container(s.in); err != nil {
		return err
	}
	_, err = s.box.Create(ctx, nil)
	if azerr.Has(err, "ContainerAlreadyExists") { // a request that was sent twice
		return nil
	}
	return err
}

// remove deletes the container, even if ctx has ended, within half a minute, and names it if it may be left.
func (s *site) remove(ctx context.Context) {
	if s.box == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if _, err := s.box.Delete(ctx, nil); err != nil && azerr.Absent(err) == "" {
		why := fail.Message(err, fail.Judge(err), "bench", "")
		s.f.Notef("left: container %s, since %s; azconc container delete %[1]s deletes it", s.in.Container, why)
	}
}
