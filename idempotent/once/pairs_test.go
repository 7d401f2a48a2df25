package once

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/outages"
	"github.com/azconc/azconc/pkg/retry"
)

// pairing is a key in a service of its own, what its callers are given, and what happens.
type pairing struct {
	given, event, fault string
	at                  int
	others              bool // the next callers have other options, as after a deployment

	t       *testing.T
	service *aztest.Service
	mu      sync.Mutex
	runs    map[string]int // by key: how often the function was run, besides the run that fails
	crashed map[string]int // of these, how often it was not known to have come to its end
	values  map[string][]byte
	dropped bool // the table of the results
}

// gone returns what reports whether the table was dropped since, with what a call has stored. mu is held when that is called.
func (p *pairing) gone() func() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.dropped
	return func() bool { return p.dropped != before }
}

// caller returns a Once of a process.
func (p *pairing) caller(name string, faults ...aztest.Fault) *Once {
	credential, _ := container.NewSharedKeyCredential(aztest.Account, aztest.Key)
	wire := policy.ClientOptions{Transport: aztest.Inject(p.service, 0, faults...)}
	box, err := container.NewClientWithSharedKeyCredential(p.service.BlobURL()+"/locks", credential, &container.ClientOptions{ClientOptions: wire})
	if err != nil {
		p.t.Fatal(err)
	}
	key, _ := aztables.NewSharedKeyCredential(aztest.Account, aztest.Key)
	rows, err := aztables.NewServiceClientWithSharedKey(p.service.TableURL(), key, &aztables.ClientOptions{ClientOptions: wire})
	if err != nil {
		p.t.Fatal(err)
	}
	o := &Options{}
	switch p.given {
	case "keep":
		o.Keep = time.Hour
	case "attempts":
		o.Attempts = 9
	case "lock":
		o.Lock = func(string) string { return "one for all" }
	}
	if p.others { // but the same locks: these decide who works on a key
		o.Keep, o.Attempts = 2*time.Hour-o.Keep, 12-o.Attempts
	}
	locks, err := pessimistic.NewLocker(box, &pessimistic.LockerOptions{Owner: name, Duration: 15 * time.Second, QuickFirst: p.given == "quick first"})
	if err != nil {
		p.t.Fatal(err)
	}
	keys, err := New(locks, rows.NewClient("results"), o)
	if err != nil {
		p.t.Fatal(err)
	}
	return keys
}

// call calls until there is a result, as a program does that begins again. first is how the function ends the first time.
func (p *pairing) call(keys *Once, key, by string, first error) {
	var last error
	for n := range 60 {
		value := fmt.Appendf(nil, "%s by %s, %d", key, by, n)
		gone := p.gone()
		out, err := p.do(keys, key, func(ctx context.Context, _ *pessimistic.Hold) ([]byte, error) {
			p.mu.Lock()
			fails := first
			if first = nil; fails == nil {
				p.runs[key]++
			}
			p.mu.Unlock()
			pass(2 * time.Second)
			return value, fails
		})
		p.mu.Lock()
		switch {
		case err == nil && gone():
			p.crashed[key]++
		case err == nil && p.values[key] == nil:
			p.values[key] = out.Value
		case err == nil && !bytes.Equal(p.values[key], out.Value):
			p.t.Errorf("%s has the results %q and %q", key, p.values[key], out.Value)
		case err == nil && !out.Replayed && !bytes.Equal(out.Value, value):
			p.t.Errorf("%s: %q is said to be new", key, out.Value)
		case err != nil && !errors.Is(err, ErrInProgress) && !errors.Is(err, errFirst): // its function may have run
			p.crashed[key]++
		}
		p.mu.Unlock()
		if err == nil {
			return
		}
		if errors.Is(err, ErrInProgress) && p.fault == "" && p.event == "" && p.given != "lock" {
			p.t.Errorf("nobody else works on %s: %v", key, err)
		}
		if errors.Is(err, ErrMismatch) || errors.Is(err, ErrAttempts) {
			p.t.Errorf("%s: %v", key, err)
		}
		last = err
		pass(time.Second)
	}
	p.t.Errorf("%s has no result after a minute of calls: %v", key, last)
}

// do is Do, and with a series what slot.Job makes of it.
func (p *pairing) do(keys *Once, key string, fn func(context.Context, *pessimistic.Hold) ([]byte, error)) (Result, error) {
	payload := []byte("payload of " + key)
	if p.given != "series" {
		return keys.Do(p.t.Context(), key, payload, fn)
	}
	ctx := p.t.Context()
	if p.fault == "" { // pauses are random, too
		ctx = retry.WithRandom(ctx, func() float64 { return 0 }) // each collects
	}
	run, err := keys.Begin(ctx, key, payload)
	if done, ok := errors.AsType[*DoneError](err); ok {
		return done.Result, nil
	}
	if err != nil {
		return Result{}, err
	}
	run.Keep, run.Series = time.Hour, "a"
	return run.Do(ctx, fn)
}

// collected: what a series keeps no longer goes with its next key, and only that.
func (p *pairing) collected() {
	for _, key := range []string{"b", "a3"} {
		p.call(p.caller("next"), key, "next", nil)
	}
	for key, want := range map[string]bool{"a": false, "a2": false, "a3": true, "b": true} {
		if _, done, err := p.caller("reader").Look(p.t.Context(), key); done != want || err != nil {
			p.t.Errorf("%s has a result: %t, %v", key, done, err)
		}
	}
}

// dropTable deletes the table of the results while a function runs: what was stored is not known any more.
func (p *pairing) dropTable() {
	pass(1500 * time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.service.TableService().NewClient("results").Delete(p.t.Context(), nil)
	p.dropped = true
	for key := range p.values {
		delete(p.values, key)
		p.crashed[key]++
	}
}

var errFirst = errors.New("the first run fails")

func (p *pairing) run(t *testing.T) (met bool) {
	p.t, p.service = t, aztest.New(nil)
	p.runs, p.crashed, p.values = map[string]int{}, map[string]int{}, map[string][]byte{}
	p.service.BlockBlob("locks", "unused") // creates the container
	var faults []aztest.Fault
	o := &outages.Outage{Lasts: 3 * time.Second, At: p.at}
	switch p.fault {
	case "answer lost":
		o.Kind, o.Lasts = aztest.LoseAnswer, time.Nanosecond
	case "outage":
		o.Kind = aztest.Refuse
	case "outage of answers":
		o.Kind = aztest.LoseAnswer
	case "crash":
		o.Kind, o.Lasts = aztest.Refuse, time.Hour
	}
	if o.Kind != "" {
		faults = append(faults, o.Fault())
	}
	first := p.caller("first", faults...)
	var all sync.WaitGroup
	keys := []string{"a"}
	if p.given == "lock" {
		keys = append(keys, "b")
	}
	if p.given == "series" {
		keys = append(keys, "a2")
	}
	if p.event == "table made again" {
		all.Go(p.dropTable)
	}
	for _, key := range keys {
		all.Go(func() {
			if p.fault == "crash" {
				ctx, die := context.WithTimeout(t.Context(), 10*time.Second)
				defer die()
				gone := p.gone()
				out, err := first.Do(ctx, key, []byte("payload of "+key), func(context.Context, *pessimistic.Hold) ([]byte, error) {
					p.mu.Lock()
					p.runs[key]++
					p.mu.Unlock()
					return []byte("before the crash"), nil
				})
				p.mu.Lock()
				defer p.mu.Unlock()
				if err == nil && !gone() {
					p.values[key] = out.Value
				} else {
					p.crashed[key]++
				}
				return
			}
			failure := error(nil)
			if p.event == "fails once" {
				failure = errFirst
			}
			p.call(first, key, "first", failure)
		})
		if p.others = p.event == "other options at once"; p.others || p.event == "another at once" {
			second := p.caller("second")
			all.Go(func() { p.call(second, key, "second", nil) })
		}
	}
	all.Wait()
	if p.event == "after Keep" {
		pass(50 * time.Hour) // what is kept for less is deleted by chance, and replayed until then: see Options.Keep
	}
	if p.fault == "crash" {
		pass(20 * time.Second)
	}
	p.others = p.event == "other options after"
	for _, key := range keys {
		before := p.runs[key]
		p.call(p.caller("last"), key, "last", nil)
		least := 1
		if n := p.runs[key]; n < least || n > least+p.crashed[key] {
			t.Errorf("%s was run %d times, want %d; %d ends are not known", key, n, least, p.crashed[key])
		}
		if p.crashed[key] == 0 && p.fault != "crash" && p.runs[key] > before {
			t.Errorf("%s was run again after it was done", key)
		}
	}
	if p.given == "series" && p.event == "after Keep" && p.fault == "" && !t.Failed() {
		p.collected()
	}
	return !o.End().IsZero()
}

// TestKeysInPairs: each option of a key and each event, alone and in pairs, and what the network does from each request on; in pairs from every third,
// another one in each. With -short it is a sixth of these requests.
func TestKeysInPairs(t *testing.T) {
	cases, i := 0, 0
	for _, given := range []string{"", "keep", "attempts", "lock", "quick first", "series"} {
		for _, event := range []string{"", "fails once", "another at once", "after Keep", "other options at once", "other options after", "table made again"} {
			for _, fault := range []string{"", "answer lost", "outage", "outage of answers", "crash"} {
				step := 1
				if given != "" && event != "" {
					step = 3
				}
				if testing.Short() {
					step *= 6
				}
				i++
				for at, met := 1+i%step, true; met && at < 30; at += step {
					p := &pairing{given: given, event: event, fault: fault, at: at}
					t.Run(fmt.Sprintf("%s/%s/%s/%d", given, event, fault, at), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { met = p.run(t) && fault != "" })
					})
					cases++
				}
			}
		}
	}
	t.Logf("%d cases", cases)
}
