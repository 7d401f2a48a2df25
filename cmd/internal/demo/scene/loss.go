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
	"github.com/azconc/azconc/pkg/retry"
)

const (
	increments = 60
	messages   = 30
	loseOneIn  = 5 // writes
)

type counter struct {
	N int `json:"n"`
}

func lostAnswers(s *stage) {
	s.box()
	s.increments("plain If-Match loop", "blockblob.Client.Upload", "", plainIncrement)
	sure := func(ctx context.Context, client *blockblob.Client) error {
		return only(optimistic.Update(ctx, blobs.NewJSON[counter](client), increment, nil))
	}
	s.increments("azconc blob update", updateCall, "azconc blob update @/counter.json --jq '.n += 1'", sure)
}

// increments increments a counter in one way.
func (s *stage) increments(way, library, command string, once func(context.Context, *blockblob.Client) error) {
	c := s.lossy(way, loseOneIn)
	s.must(s.crew.upload("counter.json", `{"n":0}`, nil))
	c.does(fmt.Sprintf("increments a counter %d times", increments), library, command)
	reported := 0
	for range increments {
		err := once(s.ctx, c.blob("counter.json"))
		if err == nil {
			reported++
		} else if !errors.Is(err, optimistic.ErrOutcomeUnknown) {
			c.ok(err)
		}
	}
	stored, err := optimistic.Read(s.ctx, blobs.NewJSON[counter](s.crew.blob("counter.json")), nil)
	s.must(err)
	s.tally(c, reported, stored.Value.N, "stored")
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

func increment(_ context.Context, c *counter) error { c.N++; return nil }

func lostSends(s *stage) {
	s.line()
	s.rows()
	plain, sure := s.lossy("plain queue", loseOneIn), s.lossy("azconc queue", loseOneIn)
	plain.does(fmt.Sprintf("sends %d messages", messages), "azqueue.QueueClient.EnqueueMessage", "")
	for i := range messages {
		plain.ok(only(plain.queue().EnqueueMessage(s.ctx, fmt.Sprint(i), nil)))
	}
	plain.does("receives, counts and deletes", "azqueue.QueueClient.DequeueMessages", "")
	counted := 0
	for received := true; received; {
		got, err := plain.queue().DequeueMessages(s.ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: to.Ptr(int32(32))})
		plain.ok(err)
		for _, m := range got.Messages {
			counted++
			_, _ = plain.queue().DeleteMessage(s.ctx, *m.MessageID, *m.PopReceipt, nil) // deleted, even if the response is lost
		}
		received = len(got.Messages) > 0
	}
	s.tally(plain, messages, counted, "handled")
	sure.does(fmt.Sprintf("sends %d messages with ids", messages), "Producer.Send", "azconc queue send @ --file F")
	producer, err := idempotent.NewProducer(sure.queue(), nil)
	s.must(err)
	for i := range messages {
		sure.ok(only(producer.Send(s.ctx, idempotent.Outgoing{Body: []byte(fmt.Sprint(i))})))
	}
	const consume = "azconc queue consume @ --inbox #/p --exit-when-empty --exec CMD"
	sure.does("counts each message in one transaction with its id", "Inbox.Apply", consume).ok(sure.count())
	stored, err := optimistic.Read(s.ctx, tables.NewEntity[counter](s.crew.entities(), "p", "counter"), nil)
	s.must(err)
	s.tally(sure, messages, stored.Value.N, "handled")
}

// count handles the messages of the queue until none is left: each adds to a counter, in one transaction with its marker. One whose
// handling had an unknown outcome comes back.
func (c *client) count() error {
	inbox, err := idempotent.NewInbox(c.entities(), nil)
	c.must(err)
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
		consumer, err := idempotent.NewConsumer(c.queue(), handle,
			&idempotent.ConsumerOptions{Dedupe: idempotent.DedupeInbox, Concurrency: 1, Visibility: 3 * time.Second, ExitWhenEmpty: true})
		c.must(err)
		if err := consumer.Run(c.ctx); err != nil {
			return err
		}
		left, err := c.queue().GetProperties(c.ctx, nil)
		if err != nil || *left.ApproximateMessagesCount == 0 {
			return err
		}
		if err := retry.Sleep(c.ctx, time.Second); err != nil {
			return err
		}
	}
}
