package optest

import (
	"errors"
	"flag"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/aztest/history"
)

// Recorder collects a history. Time stands still in a bubble between two waits, so the clock is a counter.
type Recorder struct {
	clock atomic.Int64
	mu    sync.Mutex
	Calls []history.Call
}

// Do records what run comes to: the value that a read returned, a conflict, or an unknown outcome. Any other error is
// returned, and nothing is recorded.
func (r *Recorder) Do(c history.Call, run func() (int, error)) error {
	c.From = r.clock.Add(1)
	value, err := run()
	c.To = r.clock.Add(1)
	switch {
	case errors.Is(err, optimistic.ErrOutcomeUnknown):
		c.To = history.Open
	case errors.Is(err, optimistic.ErrConflict):
		c.Refused = true
	case err != nil:
		return err
	case c.Kind == history.Read:
		c.Value = value
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Calls = append(r.Calls, c)
	return nil
}

// JudgeTime is more than the judge needs for a history of these tests.
const JudgeTime = 20 * time.Second

// Convicted reports whether no order of the calls explains their results.
func Convicted(calls []history.Call) bool {
	err := history.Linearizable(calls, JudgeTime)
	return err != nil && !errors.Is(err, history.ErrUndecided)
}

// DropCondition is a policy that removes If-Match and x-ms-if-tags from every request: a planted bug.
type DropCondition struct{}

// Do implements policy.Policy.
func (DropCondition) Do(r *policy.Request) (*http.Response, error) {
	for name := range r.Raw().Header {
		if strings.EqualFold(name, "If-Match") || strings.EqualFold(name, "X-Ms-If-Tags") {
			delete(r.Raw().Header, name)
		}
	}
	return r.Next()
}

// FirstSeed varies the faults of the long tests: go test ./optimistic -args -seed 1000.
var FirstSeed = flag.Uint64("seed", 0, "first seed of the long tests")
