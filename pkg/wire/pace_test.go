package wire_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/wire"
)

// account is a service whose responses the test sets.
type account struct {
	answers
	sent atomic.Int64
}

type answers struct {
	code    string        // of the refusals; empty: none
	message string        // of the refusals
	after   string        // their Retry-After
	proxy   bool          // they are an intermediary's
	trip    time.Duration // of a request
}

func (a *account) Do(r *http.Request) (*http.Response, error) {
	a.sent.Add(1)
	bubble.Sleep(a.trip)
	header := http.Header{"X-Ms-Request-Id": {"r"}, "X-Ms-Version": {"v"}}
	if a.code == "" {
		return &http.Response{StatusCode: 200, Header: header, Body: http.NoBody, Request: r}, nil
	}
	header.Set("X-Ms-Error-Code", a.code)
	if a.after != "" {
		header.Set("Retry-After", a.after)
	}
	if a.proxy {
		header = http.Header{"Retry-After": {"1"}}
	}
	return &http.Response{StatusCode: 503, Header: header, Body: io.NopCloser(strings.NewReader("<Error><Message>" + a.message + "</Message></Error>")), Request: r}, nil
}

// get sends one request, and returns how long it took.
func (a *account) get(ctx context.Context, w wire.Wire, url string, header ...string) (time.Duration, error) {
	pipeline := runtime.NewPipeline("test", "v0", runtime.PipelineOptions{}, &policy.ClientOptions{Transport: a})
	began := time.Now()
	err := w.Once(ctx, "get", 0, func(ctx context.Context) error {
		req, err := runtime.NewRequest(ctx, http.MethodGet, url)
		if err != nil {
			return err
		}
		for _, name := range header {
			req.Raw().Header[name] = []string{"3.0"}
		}
		resp, err := pipeline.Do(req)
		if err == nil && resp.StatusCode >= 300 {
			err = runtime.NewResponseError(resp)
		}
		return err
	})
	return time.Since(began), err
}

const box = "https://one.blob.core.windows.net/box/b"

// overload sends so many refused requests and as many others, so that a rate of a few a second is set.
func (a *account) overload(t *testing.T, w wire.Wire, url string, header ...string) {
	t.Helper()
	was := a.answers
	a.trip, a.code = 50*time.Millisecond, "ServerBusy"
	for n := range 24 {
		if a.code = ""; n%2 == 0 {
			a.code = "ServerBusy"
		}
		_, _ = a.get(t.Context(), w, url, header...)
	}
	a.answers = was
}

// waits returns the longest wait among ten requests at once.
func (a *account) waits(t *testing.T, w wire.Wire, url string, header ...string) (longest time.Duration) {
	t.Helper()
	took := make(chan time.Duration)
	for range 10 {
		go func() {
			d, err := a.get(t.Context(), w, url, header...)
			if err != nil {
				t.Error(err)
			}
			took <- d
		}()
	}
	for range 10 {
		longest = max(longest, <-took)
	}
	return longest
}

func TestOnlyTheOverloadedPartitionIsPaced(t *testing.T) {
	const table, version = "https://one.table.core.windows.net/orders(PartitionKey='p',RowKey='r')", "DataServiceVersion"
	const emulated = "http://127.0.0.1:10000/"
	for name, tt := range map[string]struct {
		message, first, second, path, other string
		header                              []string
		waits                               bool
	}{
		"the same blob":                   {first: box, second: box, path: "box/b", other: "box/b", waits: true},
		"another blob":                    {first: box, second: box + "2", path: "box/b", other: "box/b2"},
		"the same path elsewhere":         {first: box, second: strings.Replace(box, "one", "two", 1), path: "box/b", other: "box/b"},
		"another account of an emulator":  {first: emulated + "one/box/b", second: emulated + "two/box/b", path: "box/b", other: "box/b"},
		"another entity of the partition": {first: table, second: table, path: "orders/p/r", other: "orders/p/s", header: []string{version}, waits: true},
		"another partition":               {first: table, second: table, path: "orders/p/r", other: "orders/q/r", header: []string{version}},
		"the account":                     {message: "Operations per second is over the account limit.", first: box, second: box + "2", path: "box/b", other: "box/b2", waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &account{answers: answers{message: tt.message}}
				w := wire.Apart(wire.Wire{Paced: tt.path})
				a.overload(t, w, tt.first, tt.header...)
				w.Paced = tt.other
				if _, err := a.get(t.Context(), w, tt.second, tt.header...); err != nil { // shows which account it is
					t.Fatal(err)
				}
				if d := a.waits(t, w, tt.second, tt.header...); (d > 0) != tt.waits {
					t.Errorf("waited %v, want a wait: %v", d, tt.waits)
				}
			})
		})
	}
}

// TestWhereNothingIsRefusedNothingWaits: nor where one request in ten is, nor where an intermediary refuses.
func TestWhereNothingIsRefusedNothingWaits(t *testing.T) {
	for name, tt := range map[string]struct {
		every int
		busy  answers
	}{
		"nothing refused":         {every: 1000},
		"one in ten":              {every: 10, busy: answers{code: "ServerBusy", after: "3"}},
		"refused by a proxy":      {every: 2, busy: answers{code: "ServerBusy", proxy: true}},
		"refused for its content": {every: 2, busy: answers{code: "MetadataTooLarge"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &account{}
				w := wire.Apart(wire.Wire{Paced: "box/b"})
				for n := range 200 {
					a.answers = answers{}
					if n%tt.every == tt.every-1 {
						a.answers = tt.busy
					}
					bubble.Sleep(20 * time.Millisecond)
					if d, _ := a.get(t.Context(), w, box); d > 0 {
						t.Fatalf("request %d waited %v", n, d)
					}
				}
			})
		})
	}
}

func TestARetryAfterHoldsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{}
		w := wire.Apart(wire.Wire{Paced: "box/b"})
		a.overload(t, w, box)
		bubble.Sleep(time.Second)
		a.code, a.after = "ServerBusy", "7"
		_, _ = a.get(t.Context(), w, box)
		a.code = ""
		if d, err := a.get(t.Context(), w, box); err != nil || d < 7*time.Second || d > 8*time.Second {
			t.Errorf("waited %v (%v), want the 7 s that the service asked for", d, err)
		}
	})
}

func TestAGateOpensWhenNothingIsRefusedAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{}
		w := wire.Apart(wire.Wire{Paced: "box/b"})
		a.overload(t, w, box)
		if d := a.waits(t, w, box); d == 0 {
			t.Fatal("nothing waited")
		}
		bubble.Sleep(16 * time.Second)
		if d := a.waits(t, w, box); d > 0 {
			t.Errorf("waited %v long after the last refusal", d)
		}
	})
}

// TestAProcessThatSendsLittleIsNotPaced: of a request every 5 s half are refused, because of what others send. That one was
// carried out every 10 s is no measure of what the service takes: a few at once must not wait for seconds.
func TestAProcessThatSendsLittleIsNotPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{}
		w := wire.Apart(wire.Wire{Paced: "box/b"})
		for n := range 40 {
			if a.code = ""; n%2 == 0 {
				a.code = "ServerBusy"
			}
			if d, _ := a.get(t.Context(), w, box); d > 0 {
				t.Fatalf("request %d waited %v", n, d)
			}
			if n == 20 || n == 39 {
				a.code = ""
				if d := a.waits(t, w, box); d > 0 {
					t.Errorf("after %d requests in %d s, ten at once waited up to %v", n+1, n*5, d)
				}
			}
			bubble.Sleep(5 * time.Second)
		}
	})
}

// TestARateOfAnHourAgoIsForgotten: while nothing is sent the rate rises. If the first response after an hour is a refusal, what
// was learnt before is no measure of what the service takes.
func TestARateOfAnHourAgoIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{}
		w := wire.Apart(wire.Wire{Paced: "box/b"})
		a.overload(t, w, box)
		want := a.waits(t, w, box)
		bubble.Sleep(time.Hour)
		a.overload(t, w, box)
		if d := a.waits(t, w, box); d < want/2 {
			t.Errorf("ten requests waited %v after an hour, and %v before", d, want)
		}
	})
}

// TestARequestThatWaitsForItsTurnIsNotSent: its fate is certain when its context ends.
func TestARequestThatWaitsForItsTurnIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{}
		w := wire.Apart(wire.Wire{Paced: "box/b"})
		a.overload(t, w, box)
		bubble.Sleep(time.Second)
		a.code, a.after = "ServerBusy", "7"
		_, _ = a.get(t.Context(), w, box)
		sent := a.sent.Load()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		d, err := a.get(ctx, w, box)
		if !errors.Is(err, context.DeadlineExceeded) || d != time.Second || a.sent.Load() != sent || azerr.Classify(err).Ambiguous() {
			t.Errorf("%v after %v, %d sent: want the cause after 1 s, nothing sent, and no doubt", err, d, a.sent.Load()-sent)
		}
	})
}

// TestPlacesThatAreGivenUpAreFilled: callers whose time is up before their turn do not make those behind them wait for
// requests that are never sent.
func TestPlacesThatAreGivenUpAreFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{}
		w := wire.Apart(wire.Wire{Paced: "box/b"})
		a.overload(t, w, box)
		alone := a.waits(t, w, box)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		gaveUp := make(chan bool)
		for range 200 {
			go func() { _, err := a.get(ctx, w, box); gaveUp <- err != nil }()
		}
		n := 0
		for range 200 {
			if <-gaveUp {
				n++
			}
		}
		if n < 150 {
			t.Fatalf("only %d callers gave up", n)
		}
		if d := a.waits(t, w, box); d > 2*alone {
			t.Errorf("ten requests waited %v behind %d that had given up, and %v before", d, n, alone)
		}
	})
}

// TestAnOperationWaitsForOneTurn: a write that waited behind the reads of others would always be out of date.
func TestAnOperationWaitsForOneTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{}
		w := wire.Apart(wire.Wire{Paced: "box/b"})
		a.overload(t, w, box)
		done := make(chan error)
		for range 20 {
			go func() { _, err := a.get(t.Context(), w, box); done <- err }()
		}
		synctest.Wait() // the others wait in front of it
		w.Turn = new(wire.Turn)
		read, err := a.get(t.Context(), w, box)
		if err != nil || read == 0 {
			t.Fatalf("the first request waited %v (%v), want its turn", read, err)
		}
		for range 20 {
			<-done
		}
		if d, err := a.get(t.Context(), w, box); err != nil || d > 0 {
			t.Errorf("the second request waited %v (%v)", d, err)
		}
		if d := a.waits(t, w, box); d > 0 {
			t.Errorf("others of the operation waited %v", d)
		}
		a.code = "ServerBusy"
		_, _ = a.get(t.Context(), w, box)
		a.code = ""
		if d, err := a.get(t.Context(), w, box); err != nil || d == 0 {
			t.Errorf("after a refusal it waited %v (%v), want another turn", d, err)
		}
	})
}
