package scene

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"

	"github.com/azconc/azconc/idempotent"
	queue "github.com/azconc/azconc/idempotent/manual"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pessimistic/manual"
	"github.com/azconc/azconc/pkg/retry"
)

type order struct {
	Item string `json:"Item"`
}

func entity(s *stage) {
	s.rows()
	ctx, a, b := s.ctx, s.client("client 1"), s.client("client 2")
	target := func(c *client) tables.Entity[order] { return tables.NewEntity[order](c.entities(), "eu", "17") }
	a.does("inserts the entity", "optimistic.Create", "azconc table insert #/eu/17 --set Item=apples").
		ok(only(optimistic.Create(ctx, target(a), order{"apples"}, nil)))
	a.does("reads it", readCall, "azconc table get #/eu/17")
	first, err := optimistic.Read(ctx, target(a), nil)
	a.ok(err)
	pears := func(_ context.Context, o *order) error { o.Item = "pears"; return nil }
	b.does("changes it", updateCall, "azconc table update #/eu/17 --set Item=pears").ok(only(optimistic.Update(ctx, target(b), pears, nil)))
	a.does("replaces the version that it has read", replaceCall, "azconc table replace #/eu/17 --if-match ETAG --set Item=plums").
		refused(optimistic.ErrConflict, only(optimistic.Replace(ctx, target(a), first, order{"plums"}, nil)))
	first.ETag = azcore.ETagAny
	a.does("overwrites whatever is there: If-Match: *", replaceCall, "azconc table merge #/eu/17 --if-match '*' --set Item=plums").
		ok(only(optimistic.Replace(ctx, target(a), first, order{"plums"}, nil)))
	b.does("inserts or replaces: no condition", "tables.Upsert", "azconc table upsert #/eu/17 --set Item=cherries").
		ok(only(tables.Upsert(ctx, target(b), order{"cherries"}, nil)))
	a.does("deletes the version that is there", "optimistic.Delete", "azconc table delete-entity #/eu/17")
	last, err := optimistic.Read(ctx, target(a), nil)
	a.ok(err)
	a.ok(only(optimistic.Delete(ctx, target(a), last.State, nil)))
}

func message(s *stage) {
	s.line()
	a, b := s.client("consumer 1"), s.client("consumer 2")
	receive := func(c *client) queue.Delivery {
		got, _, err := queue.Receive(s.ctx, c.queue(), 1, time.Second, nil)
		if err == nil && len(got) == 0 {
			err = errors.New("the message was not received")
		}
		c.ok(err)
		return got[0]
	}
	p, err := idempotent.NewProducer(a.queue(), nil)
	s.must(err)
	a.does("sends a message", "Producer.Send", "azconc queue send @ --id order-17 --file F").
		ok(only(p.Send(s.ctx, idempotent.Outgoing{ID: "order-17", Body: []byte("3 apples")})))
	a.does("receives it, hidden for 1 s", "manual.Receive", "azconc queue receive @ --visibility 1s")
	first := receive(a)
	s.must(retry.Sleep(s.ctx, 2*time.Second))
	b.does("receives it: it was not deleted in time", "manual.Receive", "azconc queue receive @ --visibility 1s")
	second := receive(b)
	a.does("deletes it with the older pop receipt", "manual.Delete", "azconc queue delete-message @ ID --pop-receipt R").
		refused(nil, only(queue.Delete(s.ctx, a.queue(), first, nil)))
	b.does("deletes it", "manual.Delete", "azconc queue delete-message @ ID --pop-receipt R").
		ok(only(queue.Delete(s.ctx, b.queue(), second, nil)))
}

func filesScene(s *stage) {
	if s.rig.Files == nil {
		s.result.Outcome, s.result.Reason = "skipped", "the account has no files"
		return
	}
	ctx, share := s.ctx, s.crew.files.NewShareClient(s.name)
	s.created(only(share.Create(ctx, nil)), func() error { return only(share.Delete(s.ctx, nil)) })
	s.must(only(s.crew.file().Create(ctx, 0, nil)))
	a, b := s.client("client 1"), s.client("client 2")
	const put = "azconc file put @/page.txt --file F"
	upload := func(c *client, text string) error {
		return only(files.Upload(ctx, c.file(), strings.NewReader(text), int64(len(text)), nil))
	}
	a.does("writes the file under a lease", "files.Upload", put).ok(upload(a, "one"))
	b.does("overwrites it: no ETag is compared, the last writer wins", "files.Upload", put).ok(upload(b, "two"))
	a.does("acquires the file's lease, which has no end", "files.NewFile", "azconc file lease acquire @/page.txt")
	lease, err := manual.Acquire(ctx, files.NewFile(a.file()), &manual.AcquireOptions{Duration: pessimistic.Infinite})
	a.ok(err)
	b.does("writes without the lease", "files.Upload", put).
		refused(nil, only(b.file().UploadRange(ctx, 0, streaming.NopCloser(strings.NewReader("333")), nil)))
	b.does("reads without the lease", "files.Download", "azconc file get @/page.txt").ok(only(files.Download(ctx, b.file(), io.Discard, nil)))
	a.does("releases the lease", "manual.Release", "azconc file lease release @/page.txt --lease-id ID").
		ok(manual.Release(ctx, files.NewFile(a.file()), lease.ID, nil))
	add := func(_ context.Context, old []byte) ([]byte, error) { return append(old, "more"...), nil }
	a.does("changes it: read and write under a lease", "files.Update", "azconc file update @/page.txt --exec CMD").
		ok(only(files.Update(ctx, a.file(), add, nil)))
}
