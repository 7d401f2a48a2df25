package scene

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/retry"
)

type counter struct {
	N int `json:"n"`
}

// flaky is a client that loses one response in as many writes as the rig says.
func (s *stage) flaky(name string) *client {
	return s.lossy(name, func(write int) bool { return write%s.rig.LoseOneIn == 0 })
}

func lostAnswers(ctx context.Context, s *stage) {
	judge := s.box(ctx)
	for _, way := range []struct {
		name, library, command string
		increment              func(context.Context, *blockblob.Client) error
	}{
		{"plain If-Match loop", "blockblob.Client.Upload", "", plainIncrement},
		{"azconc blob update", updateCall, "azconc blob update @/counter.json --jq '.n += 1'", increment},
	} {
		c := s.flaky(way.name)
		s.prepare(func() error { return judge.upload(ctx, "counter.json", `{"n":0}`, optimistic.Conditions{}, nil)() })
		reported, stored := 0, 0
		s.ok(c, fmt.Sprintf("increments a counter %d times", s.rig.Increments), way.library, way.command, func() error {
			for range s.rig.Increments {
				err := way.increment(ctx, c.blob("counter.json"))
				if err == nil {
					reported++
				} else if !errors.Is(err, optimistic.ErrOutcomeUnknown) {
					return err
				}
			}
			v, err := optimistic.Read(ctx, blobs.NewJSON[counter](judge.blob("counter.json")), nil)
			if err == nil {
				stored = v.Value.N
			}
			return err
		})
		s.tally(c, reported, stored)
	}
}

// plainIncrement is the loop that documentation shows: read, change, write with If-Match, start over on 412. The SDK sends a write
// again whose response was lost, meets the first one's effect, and the loop takes that for another writer.
func plainIncrement(ctx context.Context, client *blockblob.Client) error {
	for {
		got, err := client.DownloadStream(ctx, nil)
		if err != nil {
			return err
		}
		var c counter
		err = json.NewDecoder(got.Body).Decode(&c)
		_ = got.Body.Close()
		if err != nil {
			return err
		}
		content := fmt.Sprintf(`{"n":%d}`, c.N+1)
		_, err = client.Upload(ctx, streaming.NopCloser(strings.NewReader(content)), &blockblob.UploadOptions{
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: got.ETag}},
		})
		if !bloberror.HasCode(err, bloberror.ConditionNotMet) {
			return err
		}
	}
}

func increment(ctx context.Context, client *blockblob.Client) error {
	_, err := optimistic.Update(ctx, blobs.NewJSON[counter](client), func(_ context.Context, c *counter) error { c.N++; return nil }, nil)
	return err
}

// messages is the number of messages that lost-sends sends.
const messages = 30

func lostSends(ctx context.Context, s *stage) {
	s.line(ctx)
	judge := s.rows(ctx)
	plain, sure := s.flaky("plain queue"), s.flaky("azconc queue")
	counted := 0
	s.ok(plain, fmt.Sprintf("sends %d messages", messages), "azqueue.QueueClient.EnqueueMessage", "", func() error {
		for i := range messages {
			if _, err := plain.queue().EnqueueMessage(ctx, fmt.Sprint(i), nil); err != nil {
				return err
			}
		}
		return nil
	})
	s.ok(plain, "receives, counts and deletes", "azqueue.QueueClient.DequeueMessages", "", func() error {
		for {
			got, err := plain.queue().DequeueMessages(ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: to.Ptr(int32(32))})
			if err != nil || len(got.Messages) == 0 {
				return err
			}
			for _, m := range got.Messages {
				counted++
				_, _ = plain.queue().DeleteMessage(ctx, *m.MessageID, *m.PopReceipt, nil) // deleted, even if the response is lost
			}
		}
	})
	s.tally(plain, messages, counted)
	s.ok(sure, fmt.Sprintf("sends %d messages with ids", messages), "Producer.Send", "azconc queue send @ --file F", func() error {
		producer, err := idempotent.NewProducer(sure.queue(), nil)
		for i := 0; i < messages && err == nil; i++ {
			_, err = producer.Send(ctx, idempotent.Outgoing{Body: []byte(fmt.Sprint(i))})
		}
		return err
	})
	var stored counter
	s.ok(sure, "counts each message in one transaction with its id", "Inbox.Apply", "azconc queue consume @ --inbox #/p --exit-when-empty --exec CMD", func() error {
		if err := sure.countMessages(ctx); err != nil {
			return err
		}
		v, err := optimistic.Read(ctx, tables.NewEntity[counter](judge.table(), "p", "counter"), nil)
		if err == nil {
			stored = v.Value
		}
		return err
	})
	s.tally(sure, messages, stored.N)
}

// countMessages handles the messages of the queue until none is left. One whose handling had an unknown outcome comes back.
func (c *client) countMessages(ctx context.Context) error {
	inbox, err := idempotent.NewInbox(c.table(), nil)
	if err != nil {
		return err
	}
	handle := func(ctx context.Context, m *idempotent.Message) error {
		return inbox.Apply(ctx, m, "p", func(ctx context.Context, tx *tables.Tx) error {
			var n counter
			if _, err := tx.Get(ctx, "counter", &n); err != nil {
				return err
			}
			n.N++
			return tx.Put("counter", n)
		})
	}
	for {
		consumer, err := idempotent.NewConsumer(c.queue(), handle, &idempotent.ConsumerOptions{Dedupe: idempotent.DedupeInbox, Concurrency: 1, Visibility: 3 * time.Second, ExitWhenEmpty: true})
		if err != nil {
			return err
		}
		if err := consumer.Run(ctx); err != nil {
			return err
		}
		left, err := c.queue().GetProperties(ctx, nil)
		if err != nil || *left.ApproximateMessagesCount == 0 {
			return err
		}
		if err := retry.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

func pausedHolder(ctx context.Context, s *stage) {
	judge := s.box(ctx)
	a, b := s.client("holder 1"), s.client("holder 2")
	s.prepare(func() error { return judge.upload(ctx, "locked.json", `{"n":0}`, optimistic.Conditions{}, nil)() })
	var held []*pessimistic.Hold
	take := func(c *client) func() error {
		return func() error {
			k, err := c.locker()
			if err != nil {
				return err
			}
			h, err := k.Lock(ctx, "lock", nil)
			if err == nil {
				held = append(held, h)
			}
			return err
		}
	}
	set := func(c *client, holder, n int) func() error {
		return func() error {
			_, err := optimistic.Update(ctx, blobs.Fenced(held[holder], blobs.NewJSON[counter](c.blob("locked.json"))), func(_ context.Context, v *counter) error { v.N = n; return nil }, nil)
			return err
		}
	}
	const command = "azconc lock run @/lock -- azconc blob update @/locked.json --jq '.n = 2'"
	s.ok(a, "takes the lock, and is paused", "Locker.Lock", command, take(a))
	s.ok(b, "breaks the lock", "Locker.Break", "azconc lock break @/lock --now", func() error {
		k, err := b.locker()
		if err == nil {
			_, err = k.Break(ctx, "lock", &pessimistic.BreakOptions{Now: true})
		}
		return err
	})
	s.ok(b, "takes the lock", "Locker.Lock", command, take(b))
	s.ok(b, "writes 2 with its fence", "blobs.Fenced", command, set(b, 1, 2))
	s.refused(a, "wakes up and writes 1 with its older fence", "blobs.Fenced", command, fence.ErrFenced, set(a, 0, 1))
	s.ok(a, "writes 1 without a fence: holder 2's write is gone", uploadCall, "azconc blob put @/locked.json --file F",
		a.upload(ctx, "locked.json", `{"n":1}`, optimistic.Conditions{}, nil))
	s.ok(b, "gives the lock back", "Hold.Release", command, func() error { return held[1].Release(ctx) })
	s.refused(a, "gives back what it has lost", "Hold.Release", command, pessimistic.ErrLost, func() error { return held[0].Release(ctx) })
	for _, h := range held {
		_ = h.Release(context.WithoutCancel(ctx)) // if an act before has failed
	}
}
