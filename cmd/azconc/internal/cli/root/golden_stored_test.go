package root

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic/appends"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent"
	idem "github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/settings"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/election"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pessimistic/shared"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestGoldenStored writes what azconc stores, through its libraries, and compares what the service holds then. Other versions of
// azconc read it, so a change of these files needs a reader for the old form.
func TestGoldenStored(t *testing.T) {
	tests := map[string]func(*testing.T, *shelf){
		"writes":   storeWrites,
		"entities": storeEntities,
		"locks":    storeLocks,
		"files":    storeFiles,
		"queues":   storeQueues,
		"large":    storeLarge,
		"once":     storeOnce,
	}
	for name, write := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{Service: aztest.New(nil), t: t}
				write(t, s)
				golden(t, "stored/"+name+".txt", s.out.Bytes())
			})
		})
	}
	checkNoOther(t, "stored", func(name string) bool { return tests[strings.TrimSuffix(name, ".txt")] != nil })
}

type counter struct {
	N int `json:"n"`
}

func increment(_ context.Context, c *counter) error { c.N++; return nil }

func storeWrites(t *testing.T, s *shelf) {
	ctx := t.Context()
	jobs := s.Container("jobs")
	target := blobs.NewJSON[counter](s.BlockBlob("jobs", "counter"))
	s.check(optimistic.Create(ctx, target, counter{1}, nil))
	s.check(optimistic.Update(ctx, target, increment, &optimistic.UpdateOptions{OperationID: "op-1"}))
	team := func(_ context.Context, m *map[string]string) error { *m = map[string]string{"team": "ops"}; return nil }
	s.check(blobs.Upload(ctx, s.BlockBlob("jobs", "uploaded"), strings.NewReader("content"), nil))
	s.check(optimistic.Update(ctx, blobs.NewMetadata(jobs.NewBlobClient("uploaded")), team, nil))
	s.check(appends.AppendRecord(ctx, jobs.NewAppendBlobClient("records"), []byte("one"), &appends.AppendOptions{Create: true}))
	s.check(optimistic.Update(ctx, settings.NewContainerMetadata(jobs), team, &optimistic.UpdateOptions{OperationID: "op-2"}))
	locker := s.locker("locks")
	s.fail(locker.Do(ctx, "counter", nil, func(ctx context.Context, h *pessimistic.Hold) error {
		_, err := optimistic.Update(ctx, blobs.Fenced(h, blobs.NewJSON[counter](s.BlockBlob("jobs", "fenced"))), increment, &optimistic.UpdateOptions{Create: true})
		return err
	}))
	s.blobs("jobs")
}

func storeEntities(t *testing.T, s *shelf) {
	ctx := t.Context()
	table := s.table("jobs")
	target := tables.NewEntity[counter](table, "eu", "counter")
	s.check(optimistic.Create(ctx, target, counter{1}, nil))
	s.check(optimistic.Update(ctx, target, increment, &optimistic.UpdateOptions{OperationID: "op-1"}))
	k := s.locker("locks")
	lock, err := k.TableLock("jobs", "")
	s.fail(err)
	s.fail(k.Do(ctx, lock, nil, func(ctx context.Context, h *pessimistic.Hold) error {
		_, err := tables.Transact(ctx, table, "eu", func(_ context.Context, tx *tables.Tx) error {
			return tx.Insert("moved", counter{2})
		}, &tables.TransactOptions{Holder: h, OperationID: "op-2"})
		return err
	}))
	s.entities("jobs")
	s.blobs("locks")
}

func storeLocks(t *testing.T, s *shelf) {
	ctx := t.Context()
	k := s.locker("locks")
	for _, name := range []string{"held", "released"} {
		h, err := k.Lock(ctx, name, nil)
		s.fail(err)
		if name == "released" {
			s.fail(h.Release(ctx))
		} else {
			defer func() { _ = h.Release(context.Background()) }()
		}
	}
	pool, err := shared.NewSemaphore(k, "pool", 2)
	s.fail(err)
	s.fail(pool.Do(ctx, nil, func(context.Context, *shared.Slot) error { return nil }))
	rw, err := shared.NewRWLock(k, "shared", nil)
	s.fail(err)
	s.fail(rw.RDo(ctx, nil, func(context.Context, *shared.Slot) error { return nil }))
	s.fail(rw.Do(ctx, nil, func(context.Context, *pessimistic.Hold) error { return nil }))
	leader, err := election.New(k, "leader", nil)
	s.fail(err)
	done := errors.New("done")
	if err := leader.Run(ctx, func(context.Context, *pessimistic.Hold) error { return done }); err != nil && !errors.Is(err, done) {
		t.Fatal(err)
	}
	s.blobs("locks")
}

func storeFiles(t *testing.T, s *shelf) {
	ctx := t.Context()
	f := s.File("reports", "a.json")
	s.check(f.Create(ctx, 0, nil))
	l, err := pessimistic.Acquire(ctx, files.NewFile(f), nil)
	s.fail(err)
	defer func() { _ = l.Release(context.Background()) }()
	bubble.Sleep(15 * time.Second)
	p, err := f.GetProperties(ctx, nil)
	s.fail(err)
	fmt.Fprintln(&s.out, "file reports/a.json")
	s.metadata(p.Metadata)
}

// consume handles the messages of a queue until it is empty.
func (s *shelf) consume(queue string, handler idempotent.Handler, opts idempotent.ConsumerOptions) {
	s.t.Helper()
	opts.ExitWhenEmpty = true
	c, err := idempotent.NewConsumer(s.Queue(queue), handler, &opts)
	s.fail(err)
	s.fail(c.Run(s.t.Context()))
}

func (s *shelf) send(queue string, opts *idempotent.ProducerOptions, messages ...idempotent.Outgoing) {
	s.t.Helper()
	p, err := idempotent.NewProducer(s.Queue(queue), opts)
	s.fail(err)
	for _, m := range messages {
		s.check(p.Send(s.t.Context(), m))
	}
}

func storeQueues(t *testing.T, s *shelf) {
	s.check(s.Queue("orders").Create(t.Context(), nil))
	markers, err := idempotent.NewMarkers(s.Table("markers"), nil)
	s.fail(err)
	s.send("orders", nil, idempotent.Outgoing{ID: "text", Body: []byte("text"), Headers: map[string]string{"k": "v"}}, idempotent.Outgoing{ID: "binary", Body: []byte{0xff}},
		idempotent.Outgoing{ID: "poison", Body: []byte("poison")}, idempotent.Outgoing{ID: "done", Body: []byte("done")}, idempotent.Outgoing{ID: "failed", Body: []byte("failed")})
	s.send("orders", &idempotent.ProducerOptions{Encoding: idempotent.Base64}, idempotent.Outgoing{Body: []byte("base64")})
	s.send("orders", &idempotent.ProducerOptions{Encoding: idempotent.Text}, idempotent.Outgoing{Body: []byte("unwanted")})
	s.messages("orders")
	s.consume("orders", func(_ context.Context, m *idempotent.Message) error {
		switch string(m.Body) {
		case "poison", "unwanted":
			return idempotent.Poison(errors.New("unusable"))
		case "failed":
			return idempotent.Postpone(time.Hour)
		}
		m.SetResult([]byte("result"))
		return nil
	}, idempotent.ConsumerOptions{Markers: markers, Dedupe: idempotent.DedupeComplete, Poison: s.Queue("orders-poison")})
	bubble.Sleep(2 * time.Hour)
	s.messages("orders")
	s.messages("orders-poison")
	s.entities("markers")

	table := s.table("inbox")
	inbox, err := idempotent.NewInbox(table, &idempotent.InboxOptions{KeepExpired: true})
	s.fail(err)
	s.check(s.Queue("rows").Create(t.Context(), nil))
	s.send("rows", nil, idempotent.Outgoing{ID: "row", Body: []byte("row")})
	s.consume("rows", func(ctx context.Context, m *idempotent.Message) error {
		return inbox.Apply(ctx, m, "eu", func(_ context.Context, tx *tables.Tx) error { return tx.Insert("effect", counter{1}) })
	}, idempotent.ConsumerOptions{Dedupe: idempotent.DedupeInbox})
	s.entities("inbox")
}

func storeLarge(t *testing.T, s *shelf) {
	s.check(s.Queue("orders").Create(t.Context(), nil))
	s.check(s.Container("bodies").Create(t.Context(), nil))
	claims, err := idempotent.NewClaimCheck(s.Container("bodies"), nil)
	s.fail(err)
	random := make([]byte, 100<<10)
	for i, x := 0, uint32(1); i < len(random); i++ {
		x = x*1664525 + 1013904223
		random[i] = byte(x >> 24)
	}
	s.send("orders", &idempotent.ProducerOptions{ClaimCheck: claims}, idempotent.Outgoing{ID: "stored", Body: random}, idempotent.Outgoing{ID: "compressed", Body: bytes.Repeat([]byte("text"), 25<<10)})
	s.messages("orders")
	s.blobs("bodies")
}

func storeOnce(t *testing.T, s *shelf) {
	once, err := idem.New(s.locker("locks"), s.table("results"), nil)
	s.fail(err)
	s.check(once.Do(t.Context(), "deploy-42", []byte("payload"), func(context.Context, *pessimistic.Hold) ([]byte, error) { return []byte("result"), nil }))
	s.blobs("locks")
	s.entities("results")
}

// shelf is a service, and a description of what it holds.
type shelf struct {
	*aztest.Service
	t   *testing.T
	out bytes.Buffer
}

func (s *shelf) fail(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// check fails the test if the last result of a call is an error.
func (s *shelf) check(_ any, err error) {
	s.t.Helper()
	s.fail(err)
}

func (s *shelf) locker(name string) *pessimistic.Locker {
	s.t.Helper()
	s.check(s.Container(name).Create(s.t.Context(), nil))
	k, err := pessimistic.NewLocker(s.Container(name), &pessimistic.LockerOptions{Owner: "web 1"})
	s.fail(err)
	return k
}

func (s *shelf) table(name string) *aztables.Client {
	s.t.Helper()
	s.check(s.TableService().CreateTable(s.t.Context(), name, nil))
	return s.Table(name)
}

// blobs describes a container and its blobs.
func (s *shelf) blobs(name string) {
	s.t.Helper()
	c := s.Container(name)
	p, err := c.GetProperties(s.t.Context(), nil)
	s.fail(err)
	fmt.Fprintln(&s.out, "container", name)
	s.metadata(p.Metadata)
	for pages := c.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Metadata: true, Tags: true}}); pages.More(); {
		page, err := pages.NextPage(s.t.Context())
		s.fail(err)
		for _, b := range page.Segment.BlobItems {
			content := make([]byte, *b.Properties.ContentLength)
			s.check(c.NewBlobClient(*b.Name).DownloadBuffer(s.t.Context(), content, nil))
			fmt.Fprintf(&s.out, "%s %s/%s: %s\n", *b.Properties.BlobType, name, s.shape(*b.Name), s.content(content))
			s.metadata(b.Metadata)
		}
	}
}

func (s *shelf) content(data []byte) string {
	if len(data) > 1<<10 {
		return fmt.Sprintf("%d bytes", len(data))
	}
	return fmt.Sprintf("%q", s.shape(string(data)))
}

func (s *shelf) metadata(m map[string]*string) {
	for _, name := range slices.SortedFunc(maps.Keys(m), func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) }) {
		fmt.Fprintf(&s.out, "  %s = %s\n", strings.ToLower(name), s.shape(*m[name]))
	}
}

func (s *shelf) entities(name string) {
	s.t.Helper()
	fmt.Fprintln(&s.out, "table", name)
	var all []string
	for pages := s.Table(name).NewListEntitiesPager(&aztables.ListEntitiesOptions{Format: to.Ptr(aztables.MetadataFormatFull)}); pages.More(); {
		page, err := pages.NextPage(s.t.Context())
		s.fail(err)
		for _, data := range page.Entities {
			var e map[string]any
			s.fail(json.Unmarshal(data, &e))
			text := s.shape(fmt.Sprintf("entity %s/%s\n", e["PartitionKey"], e["RowKey"]))
			for _, property := range slices.Sorted(maps.Keys(e)) {
				if property != "PartitionKey" && property != "RowKey" && !strings.HasPrefix(property, "odata.") && !strings.HasPrefix(property, "Timestamp") {
					text += s.shape(fmt.Sprintf("  %s = %v\n", property, e[property]))
				}
			}
			all = append(all, text)
		}
	}
	slices.Sort(all) // keys may be random
	s.out.WriteString(strings.Join(all, ""))
}

func (s *shelf) messages(queue string) {
	s.t.Helper()
	fmt.Fprintln(&s.out, "queue", queue)
	r, err := s.Queue(queue).PeekMessages(s.t.Context(), &azqueue.PeekMessagesOptions{NumberOfMessages: to.Ptr(int32(32))})
	s.fail(err)
	var all []string
	for _, m := range r.Messages {
		all = append(all, "  "+s.shape(*m.MessageText)+"\n")
	}
	slices.Sort(all) // they were sent at once by several handlers
	s.out.WriteString(strings.Join(all, ""))
}

// shape replaces what differs between two runs.
func (s *shelf) shape(value string) string {
	host, err := os.Hostname()
	s.fail(err)
	for _, separator := range []string{"/", "%2F"} {
		value = strings.ReplaceAll(value, fmt.Sprint(host, separator, os.Getpid()), "<host>"+separator+"<pid>")
	}
	for _, random := range []struct{ pattern, name string }{
		{`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, "<uuid>"},
		{`\bw[a-z2-7]{16}\b`, "<write>"},
		{`<write>((?:\+\d+)?)\.[A-Za-z0-9_-]{10}`, "<write>$1.<version>"},
		{`\b8DE[0-9A-F]{12}\b`, "<etag>"},
		{`^[0-9a-f]{16}$`, "<seal>"},
		{`^\d+ 946\d{6} \d+ \d+ \d+$`, "<turns>"},
		{`T\d\d(:|%3A)\d\d(:|%3A)\d\d(\.\d+)?Z`, "T<time>Z"},
		{`\b946\d{9}\b`, "<fence>"},
		{`slot/\d+`, "slot/<n>"},
		{`"gzip":"[^"]+"`, `"gzip":"<gzip>"`},
	} {
		value = regexp.MustCompile(random.pattern).ReplaceAllString(value, random.name)
	}
	return value
}
