package appends

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/aztest/outages"
)

// written is a record that a writer has appended, or tried to.
type written struct {
	writer, n int
	res       LogResult
	acked     bool
}

// judgeLog returns what is wrong with a log: records that were acknowledged and are not there once, where they were reported; others
// that are there twice; and records of a writer out of order.
func judgeLog(wrote []written, read []LogRecord) (wrong []string) {
	at := map[string]LogRecord{}
	order := map[int]int{}
	for _, r := range read {
		data := string(r.Data)
		if _, twice := at[data]; twice {
			wrong = append(wrong, "twice: "+data)
		}
		at[data] = r
		writer, n, _ := strings.Cut(data, "/")
		w, _ := strconv.Atoi(writer)
		if i, err := strconv.Atoi(n); err != nil || i <= order[w] {
			wrong = append(wrong, fmt.Sprintf("out of order: %s after %d", data, order[w]))
		} else {
			order[w] = i
		}
	}
	for _, w := range wrote {
		data := fmt.Sprintf("%d/%d", w.writer, w.n)
		r, there := at[data]
		if w.acked && (!there || r.ID != w.res.ID || r.Position != w.res.Position || r.Next != w.res.Next) {
			wrong = append(wrong, fmt.Sprintf("lost: %s was reported at %s, and read (%v) at %s", data, w.res.Position, there, r.Position))
		}
		delete(at, data)
	}
	for data := range at {
		wrong = append(wrong, "from nobody: "+data)
	}
	return wrong
}

// mortal is the transport of a client whose process is killed within a request.
type mortal struct {
	s    *aztest.Service
	left atomic.Int64 // writes until then
	late bool         // the service has carried out the last request
	kill func()
}

// Do implements policy.Transporter.
func (m *mortal) Do(r *http.Request) (*http.Response, error) {
	if left := m.left.Load(); left > 0 && r.Method != http.MethodPut {
		return m.s.Do(r)
	}
	left := m.left.Add(-1)
	if left > 0 {
		return m.s.Do(r)
	}
	if left == 0 && m.late {
		_, _ = m.s.Do(r)
	}
	m.kill()
	return nil, errors.New("killed")
}

// client returns the container box for one process.
func (m *mortal) client(t *testing.T) *container.Client {
	key, err := container.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := container.NewClientWithSharedKeyCredential(m.s.BlobURL()+"/box", key, &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: policy.Transporter(m)}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// crowd is a run of several writers and a follower.
type crowd struct {
	records int // of each writer
	o       LogOptions
	pause   time.Duration // of a writer after each record, at most
	sleeps  time.Duration // of writer 1, half way
	least   int           // blobs that there must be at the end
	before  int           // records in the first blob when the writers begin
}

// fill appends so many records to the first blob of an empty log, without what the SDK adds to requests, and returns the position after
// them.
func fill(t *testing.T, s *aztest.Service, l *Log, records int) Position {
	t.Helper()
	res, err := l.Append(t.Context(), []byte("first"))
	if err != nil {
		t.Fatal(err)
	}
	line := string(frame("w1", []byte("filler")))
	for range records - 1 {
		r, err := http.NewRequest(http.MethodPut, l.part(1).URL()+"?comp=appendblock", strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "of the tests")
		if resp, err := s.Do(r); err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatal(resp, err)
		}
	}
	return Position{Blob: 1, Offset: res.Next.Offset + int64((records-1)*len(line))}
}

// run returns what was written and read, and what the follower has seen.
func (c crowd) run(t *testing.T, seed uint64) (wrote []written, read, followed []LogRecord) {
	s := aztest.New(&aztest.Options{Seed: seed, Latency: optest.Latencies(int64(seed)), DateLag: time.Second, WithoutLog: true})
	s.BlockBlob("box", "any") // makes the container
	from := Position{}
	if c.before > 0 {
		from = fill(t, s, newLog(t, s, &c.o), c.before)
	}
	writes := aztest.Op(add, seal, put)
	s.SetFaults(
		aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.05},
		aztest.Fault{Kind: aztest.AnswerTwice, Match: writes, Probability: 0.03},
		aztest.Fault{Kind: aztest.LoseRequest, Match: writes, Probability: 0.02},
		aztest.Fault{Kind: aztest.DelayCommit, Match: writes, Probability: 0.02, Delay: 300 * time.Millisecond},
		aztest.Fault{Kind: aztest.CommitAfterBreak, Match: writes, Probability: 0.01, Delay: 40 * time.Second},
		aztest.Fault{Kind: aztest.RepeatLater, Match: writes, Probability: 0.02, Delay: 20 * time.Second},
	)
	ctx, stop := context.WithCancel(context.Background())
	var writers, all sync.WaitGroup
	all.Go(func() {
		for r, err := range newLog(t, s, nil).Records(ctx, from, &RecordsOptions{Follow: true}) {
			if err == nil {
				followed = append(followed, r)
			} else if ctx.Err() == nil {
				t.Errorf("seed %d: the follower: %v", seed, err)
			}
		}
	})
	var mu sync.Mutex
	var process func(me, lives int)
	process = func(me, lives int) {
		random := rand.New(rand.NewPCG(seed, uint64(me)))
		ctx, kill := context.WithCancel(context.Background())
		defer kill()
		m := &mortal{s: s, late: random.IntN(4) > 0, kill: kill}
		m.left.Store(1 << 40)
		if lives > 0 { // another process takes its place
			m.left.Store(random.Int64N(int64(2 * c.records)))
		}
		l, err := NewLog(m.client(t), "app", &c.o)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= c.records; n++ {
			res, err := l.Append(ctx, fmt.Appendf(nil, "%d/%d", me, n))
			mu.Lock()
			wrote = append(wrote, written{me, n, res, err == nil})
			mu.Unlock()
			if ctx.Err() != nil {
				writers.Go(func() { process(me+100, lives-1) })
				return
			}
			if err != nil && !errors.Is(err, optimistic.ErrOutcomeUnknown) {
				t.Errorf("seed %d: %d/%d: %v", seed, me, n, err)
			}
			bubble.Sleep(time.Duration(random.Int64N(int64(c.pause))))
			if me == 1 && n == c.records/2 {
				bubble.Sleep(c.sleeps)
			}
		}
	}
	for me := range 8 {
		writers.Go(func() { process(me, me%3) })
	}
	writers.Wait()
	s.SetFaults()
	s.Flush()
	bubble.Sleep(10 * time.Second)
	stop()
	all.Wait()
	for r, err := range newLog(t, s, nil).Records(context.Background(), from, nil) {
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		read = append(read, r)
	}
	return wrote, read, followed
}

// TestNoRecordOfALogIsLostOrDoubled: eight writers, of which some are killed and one sleeps, a follower, and everything that can go
// wrong, while blobs become too large, too old or full.
func TestNoRecordOfALogIsLostOrDoubled(t *testing.T) {
	size := crowd{records: 30, o: LogOptions{MaxSize: 1000}, pause: 200 * time.Millisecond, sleeps: time.Minute, least: 8}
	age := crowd{records: 30, o: LogOptions{MaxAge: 3 * time.Second}, pause: time.Second, sleeps: 10 * time.Second, least: 4}
	full := crowd{records: 60, pause: time.Second, sleeps: time.Hour, least: 2, before: 49_800} // of the 50,000 that the service takes
	unheard := 0                                                                                // records of writers that were killed before they had the response
	for name, c := range map[string]crowd{"by size": size, "by age": age, "full": full} {
		if c.before > 0 && (testing.Short() || optest.RaceScale > 1) {
			continue
		}
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					wrote, read, followed := c.run(t, *optest.FirstSeed+seed)
					wrong := judgeLog(wrote, read)
					for _, w := range wrong[:min(len(wrong), 10)] {
						t.Error(w)
					}
					same := len(read) == len(followed)
					for i := range min(len(read), len(followed)) {
						same = same && read[i].ID == followed[i].ID && read[i].Next == followed[i].Next
					}
					if !same {
						t.Errorf("the follower has seen %d records, there are %d", len(followed), len(read))
					}
					acked := 0
					for _, w := range wrote {
						if w.acked {
							acked++
						}
					}
					if last := read[len(read)-1].Position.Blob; last < c.least || acked < 7*c.records {
						t.Errorf("too tame: %d records acknowledged, %d blobs", acked, last)
					}
					unheard += len(read) - acked
				})
			})
		}
	}
	if unheard == 0 {
		t.Error("too tame: no writer was killed after the service had its record")
	}
}

// TestALogSurvivesAnOutage that begins with any request of two rolls. Records whose outcome is unknown are not tried again, and none of
// them is there twice.
func TestALogSurvivesAnOutage(t *testing.T) {
	outages.Each(t, func(t *testing.T, o *outages.Outage) {
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 10 * time.Millisecond }})
		s.BlockBlob("box", "any")
		writers := []*Log{newLog(t, s, &LogOptions{MaxSize: 90}), newLog(t, s, &LogOptions{MaxAge: time.Second})}
		s.SetFaults(o.Fault())
		var wrote []written
		failed := 0
		for n := 1; n <= 8; n++ {
			me := n / 3 % 2
			res, err := writers[me].Append(t.Context(), fmt.Appendf(nil, "%d/%d", me, n))
			wrote = append(wrote, written{me, n, res, err == nil})
			if err != nil {
				failed++
			}
			bubble.Sleep(500 * time.Millisecond)
			if n == 5 {
				bubble.Sleep(o.Lasts) // so that the last records come after the outage
			}
		}
		s.SetFaults()
		var read []LogRecord
		for r, err := range writers[0].Records(t.Context(), Position{}, nil) {
			if err != nil {
				t.Fatal(err)
			}
			read = append(read, r)
		}
		for _, wrong := range judgeLog(wrote, read) {
			t.Error(wrong)
		}
		if last := read[len(read)-1].Position.Blob; failed > 5 || last < 2 {
			t.Errorf("%d of 8 records failed, %d blobs", failed, last)
		}
	})
}
