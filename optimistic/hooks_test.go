package optimistic_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/settings"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

// recorder writes down what hooks receive: spans as they end, below their parents, and events.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

type spanKey struct{}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *recorder) hooks() observe.Hooks {
	return observe.Hooks{
		Span: func(ctx context.Context, s observe.Span) (context.Context, func(error)) {
			name := s.Name
			if parent, ok := ctx.Value(spanKey{}).(string); ok {
				name = parent + " > " + name
			}
			return context.WithValue(ctx, spanKey{}, name), func(err error) {
				r.note("%s %s request=%t failed=%t", name, s.Resource, s.Request != nil, err != nil)
			}
		},
		Event: func(ctx context.Context, e observe.Event) {
			r.note("%s: %s %s %s failed=%t", ctx.Value(spanKey{}), e.Subject, e.Kind, e.Resource, e.Err != nil)
		},
	}
}

func (r *recorder) check(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(r.lines, want) {
		t.Errorf("the hooks received\n%s\nwant\n%s", strings.Join(r.lines, "\n"), strings.Join(want, "\n"))
	}
}

// TestAnUpdateIsObserved with one conflict and one lost response: a span for the call, one for each request, and an event
// for each fact that a counter counts. As many requests are observed as are counted and sent.
func TestAnUpdateIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":0}`)
		var r recorder
		res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), func(ctx context.Context, c *optest.Counter) error {
			if optimistic.EarlierRuns(ctx) == 0 {
				optest.Put(t, client, `{"n":10}`)
				s.Reset()
			} else {
				s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
			}
			return optest.Increment(ctx, c)
		}, &optimistic.UpdateOptions{SendOptions: optimistic.SendOptions{Hooks: r.hooks()}})
		if err != nil || res.Conflicts != 1 || res.Ambiguous != 1 || res.Resolved != 1 || res.Requests != 6 || s.Requests() != 5 {
			t.Errorf("%+v, %v, %d requests since the rival's", res, err, s.Requests())
		}
		r.check(t,
			"optimistic.Update > Get Blob box/n.json request=true failed=false",
			"optimistic.Update > Put Blob box/n.json request=true failed=true",
			"optimistic.Update: change conflict box/n.json failed=true",
			"optimistic.Update > Get Blob box/n.json request=true failed=false",
			"optimistic.Update > Put Blob box/n.json request=true failed=true",
			"optimistic.Update: change lost-response box/n.json failed=true",
			"optimistic.Update > Put Blob box/n.json request=true failed=true",
			"optimistic.Update > Get Blob Properties box/n.json request=true failed=false",
			"optimistic.Update: change resolved box/n.json failed=false",
			"optimistic.Update box/n.json request=false failed=false",
		)
	})
}

// TestADocumentIsObserved: the first caller's span has the requests of the fold.
func TestADocumentIsObserved(t *testing.T) {
	_, client := optest.Quiet(t, `{"n":0}`)
	var r recorder
	d, err := optimistic.NewDocument(blobs.NewJSON[optest.Counter](client), &optimistic.DocumentOptions{
		Update: optimistic.UpdateOptions{SendOptions: optimistic.SendOptions{Hooks: r.hooks()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Update(t.Context(), optest.Increment); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.check(t,
		"optimistic.Update > Get Blob box/n.json request=true failed=false",
		"optimistic.Update > Put Blob box/n.json request=true failed=false",
		"optimistic.Update box/n.json request=false failed=false",
		"optimistic.Read > Get Blob box/n.json request=true failed=false",
		"optimistic.Read box/n.json request=false failed=false",
	)
}

// TestTheRemovalOfQueuesAndTablesIsObserved, and what creates a table: a span for each call, and one for its request.
func TestTheRemovalOfQueuesAndTablesIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		var r recorder
		ctx, table, queue := t.Context(), s.TableService().NewClient("stock"), s.Queue("orders")
		to, qo := &tables.TableOptions{Hooks: r.hooks()}, &settings.QueueOptions{Hooks: r.hooks()}
		for _, err := range []error{
			optest.ErrorOf(tables.CreateTable(ctx, table, to)),
			optest.ErrorOf(tables.Upsert(ctx, tables.NewEntity[tables.Properties](table, "p", "r"), tables.Properties{}, to)),
			optest.ErrorOf(tables.DeleteTable(ctx, table, to)),
			optest.ErrorOf(settings.ClearQueue(ctx, queue, qo)),
			optest.ErrorOf(settings.DeleteQueue(ctx, queue, qo)),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		r.check(t,
			"tables.CreateTable > Create Table stock request=true failed=false",
			"tables.CreateTable stock request=false failed=false",
			"tables.Upsert > Insert Or Merge Entity stock/p/r request=true failed=false",
			"tables.Upsert stock/p/r request=false failed=false",
			"tables.DeleteTable > Delete Table stock request=true failed=false",
			"tables.DeleteTable stock request=false failed=false",
			"settings.ClearQueue > Clear Messages orders request=true failed=false",
			"settings.ClearQueue orders request=false failed=false",
			"settings.DeleteQueue > Delete Queue orders request=true failed=false",
			"settings.DeleteQueue orders request=false failed=false",
		)
	})
}
