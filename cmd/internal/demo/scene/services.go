package scene

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

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
	var first *optimistic.Version[order]
	s.ok(a, "inserts the entity", "optimistic.Create", "azconc table insert #/eu/17 --set Item=apples", func() error {
		return only(optimistic.Create(ctx, target(a), order{"apples"}, nil))
	})
	s.ok(a, "reads it", readCall, "azconc table get #/eu/17", func() (err error) {
		first, err = optimistic.Read(ctx, target(a), nil)
		return err
	})
	s.ok(b, "changes it", updateCall, "azconc table update #/eu/17 --set Item=pears", func() error {
		return only(optimistic.Update(ctx, target(b), func(_ context.Context, o *order) error { o.Item = "pears"; return nil }, nil))
	})
	s.refused(a, "replaces the version that it has read", replaceCall, "azconc table replace #/eu/17 --if-match ETAG --set Item=plums", optimistic.ErrConflict, func() error {
		return only(optimistic.Replace(ctx, target(a), first, order{"plums"}, nil))
	})
	s.ok(a, "overwrites whatever is there: If-Match: *", "tables.Upsert", "azconc table merge #/eu/17 --if-match '*' --set Item=plums", func() error {
		content, err := json.Marshal(map[string]string{"PartitionKey": "eu", "RowKey": "17", "Item": "plums"})
		s.must(err)
		return only(a.entities().UpdateEntity(ctx, content, &aztables.UpdateEntityOptions{IfMatch: new(azcore.ETagAny), UpdateMode: aztables.UpdateModeMerge}))
	})
	s.ok(b, "inserts or replaces: no condition", "tables.Upsert", "azconc table upsert #/eu/17 --set Item=cherries", func() error {
		return only(tables.Upsert(ctx, target(b), order{"cherries"}, nil))
	})
	s.ok(a, "deletes the version that is there", "optimistic.Delete", "azconc table delete-entity #/eu/17", func() error {
		v, err := optimistic.Read(ctx, target(a), nil)
		if err == nil {
			_, err = optimistic.Delete(ctx, target(a), v.State, nil)
		}
		return err
	})
}

func message(s *stage) {
	s.line()
	a, b := s.client("consumer 1"), s.client("consumer 2")
	got := map[*client]queue.Delivery{}
	receive := func(c *client) func() error {
		return func() error {
			m, _, err := queue.Receive(s.ctx, c.queue(), 1, time.Second, nil)
			if err == nil && len(m) == 0 {
				err = errors.New("the message was not received")
			}
			if err == nil {
				got[c] = m[0]
			}
			return err
		}
	}
	remove := func(c *client) func() error {
		return func() error { return only(queue.Delete(s.ctx, c.queue(), got[c], nil)) }
	}
	s.ok(a, "sends a message", "Producer.Send", "azconc queue send @ --id order-17 --file F", func() error {
		p, err := idempotent.NewProducer(a.queue(), nil)
		s.must(err)
		return only(p.Send(s.ctx, idempotent.Outgoing{ID: "order-17", Body: []byte("3 apples")}))
	})
	s.ok(a, "receives it, hidden for 1 s", "manual.Receive", "azconc queue receive @ --visibility 1s", receive(a))
	s.must(retry.Sleep(s.ctx, 2*time.Second))
	s.ok(b, "receives it: it was not deleted in time", "manual.Receive", "azconc queue receive @ --visibility 1s", receive(b))
	s.refused(a, "deletes it with the older pop receipt", "manual.Delete", "azconc queue delete-message @ ID --pop-receipt R", nil, remove(a))
	s.ok(b, "deletes it", "manual.Delete", "azconc queue delete-message @ ID --pop-receipt R", remove(b))
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
	upload := func(c *client, text string) func() error {
		return func() error { return only(files.Upload(ctx, c.file(), strings.NewReader(text), int64(len(text)), nil)) }
	}
	s.ok(a, "writes the file under a lease", "files.Upload", put, upload(a, "one"))
	s.ok(b, "overwrites it: no ETag is compared, the last writer wins", "files.Upload", put, upload(b, "two"))
	var id string
	s.ok(a, "acquires the file's lease, which has no end", "files.NewFile", "azconc file lease acquire @/page.txt", func() error {
		got, err := manual.Acquire(ctx, files.NewFile(a.file()), &manual.AcquireOptions{Duration: pessimistic.Infinite})
		id = got.ID
		return err
	})
	s.refused(b, "writes without the lease", "files.Upload", put, nil, func() error {
		return only(b.file().UploadRange(ctx, 0, streaming.NopCloser(strings.NewReader("333")), nil))
	})
	s.ok(b, "reads without the lease", "files.Download", "azconc file get @/page.txt", func() error {
		return only(files.Download(ctx, b.file(), io.Discard, nil))
	})
	s.ok(a, "releases the lease", "manual.Release", "azconc file lease release @/page.txt --lease-id ID", func() error {
		return manual.Release(ctx, files.NewFile(a.file()), id, nil)
	})
	s.ok(a, "changes it: read and write under a lease", "files.Update", "azconc file update @/page.txt --exec CMD", func() error {
		return only(files.Update(ctx, a.file(), func(_ context.Context, old []byte) ([]byte, error) { return append(old, "more"...), nil }, nil))
	})
}
