package idempotent

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

// inSessionBubble is inBubble with a container for sessions.
func inSessionBubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	inBubble(t, func(t *testing.T, r *rig) {
		if _, err := r.service.Container("sessions").Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		r.service.Reset()
		test(t, r)
	})
}

func (r *rig) sessions(transport policy.Transporter, o *SessionsOptions) *Sessions {
	r.t.Helper()
	credential, err := container.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		r.t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(r.service.BlobURL()+"/sessions", credential, &container.ClientOptions{ClientOptions: policy.ClientOptions{Transport: transport}})
	if err != nil {
		r.t.Fatal(err)
	}
	k, err := NewSessions(client, o)
	if err != nil {
		r.t.Fatal(err)
	}
	return k
}

// leased tells for each session's blob whether it is leased.
func (r *rig) leased() map[string]bool {
	r.t.Helper()
	all := map[string]bool{}
	for pages := r.service.Container("sessions").NewListBlobsFlatPager(nil); pages.More(); {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			r.t.Fatal(err)
		}
		for _, b := range page.Segment.BlobItems {
			all[*b.Name] = *b.Properties.LeaseState == lease.StateTypeLeased
		}
	}
	return all
}

// alive is how many sessions are leased.
func (r *rig) alive() (n int) {
	for _, leased := range r.leased() {
		if leased {
			n++
		}
	}
	return n
}

// member is a consumer with Sessions, in a process of its own.
type member struct {
	*process
	c    *Consumer
	stop context.CancelFunc
	end  chan error

	mu     sync.Mutex
	events []observe.Event
}

// join runs a consumer until it is stopped.
func (r *rig) join(p *process, h Handler, s *SessionsOptions, o ConsumerOptions) *member {
	r.t.Helper()
	m := &member{process: p, end: make(chan error, 1)}
	o.Markers, o.Sessions, o.Poison = p.markers, r.sessions(p.wire, s), p.poison
	o.Visibility, o.Backoff = 9*time.Second, pollEvery(time.Second)
	if o.Poll.Base == 0 {
		o.Poll = pollEvery(time.Second)
	}
	o.Hooks.Event = func(_ context.Context, e observe.Event) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.events = append(m.events, e)
	}
	var err error
	if m.c, err = NewConsumer(p.queue, h, &o); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	go func() { m.end <- m.c.Run(ctx) }()
	return m
}

// leave stops it and waits.
func (m *member) leave() error {
	m.stop()
	return <-m.end
}

// kinds are those of its events, and what the errors of one of them say.
func (m *member) kinds(say observe.Kind) (kinds []observe.Kind, texts []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events {
		kinds = append(kinds, e.Kind)
		if e.Kind == say && e.Err != nil {
			texts = append(texts, e.Err.Error())
		}
	}
	return kinds, texts
}

// untilEmpty lets time pass until the queue is empty, hidden messages included.
func (r *rig) untilEmpty(most time.Duration) {
	for began := time.Now(); len(r.left(r.queue)) > 0 && time.Since(began) < most; {
		pass(time.Second)
	}
}

func (r *rig) sendAs(as Encoding, id string) {
	r.t.Helper()
	p, err := NewProducer(r.queue, &ProducerOptions{Encoding: as})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := p.Send(context.Background(), Outgoing{ID: id, Body: []byte(id)}); err != nil {
		r.t.Fatal(err)
	}
}

// deaf has a process receive once, and never again.
func deaf() aztest.Fault {
	return aztest.Fault{Kind: aztest.Refuse, Match: aztest.Op("Get Messages"), Skip: 1}
}
