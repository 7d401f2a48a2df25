package optest

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/anishathalye/porcupine"

	"github.com/azconc/azconc/optimistic"
)

// Op is what a client did, for the judge. Models follow below.
type Op struct {
	Add  int // of a counter
	Set  int // of a register
	Read bool
}

// Outcome is what the client was told.
type Outcome struct {
	Value   int  // of a read
	Refused bool // a conflict: it had no effect
}

// CounterModel is a counter whose additions either take effect once or, when refused, not at all. An operation with an
// unknown outcome is given no end by the recorder: it may take effect at any time, or, as far as the judge can see,
// after everything else.
var CounterModel = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, in, out any) (bool, any) {
		s, i, o := state.(int), in.(Op), out.(Outcome)
		switch {
		case i.Read:
			return o.Value == s, s
		case o.Refused:
			return true, s
		default:
			return true, s + i.Add
		}
	},
}

// Recorder collects a history. Time stands still in a bubble between two waits, so the clock is a counter.
type Recorder struct {
	clock atomic.Int64
	mu    sync.Mutex
	Ops   []porcupine.Operation
}

func (r *Recorder) Do(client int, in Op, run func() (Outcome, error)) error {
	call := r.clock.Add(1)
	out, err := run()
	end := r.clock.Add(1)
	switch {
	case errors.Is(err, optimistic.ErrOutcomeUnknown):
		end = 1 << 60
	case errors.Is(err, optimistic.ErrConflict):
		out.Refused = true
	case err != nil:
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Ops = append(r.Ops, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: end})
	return nil
}

type DropCondition struct{}

func (DropCondition) Do(r *policy.Request) (*http.Response, error) {
	for name := range r.Raw().Header {
		if strings.EqualFold(name, "If-Match") {
			delete(r.Raw().Header, name)
		}
	}
	return r.Next()
}

func Told(ops []porcupine.Operation) string {
	var b strings.Builder
	for _, o := range ops {
		fmt.Fprintf(&b, "%3d [%d, %d] %+v -> %+v\n", o.ClientId, o.Call, o.Return, o.Input, o.Output)
	}
	return b.String()
}

// FirstSeed makes long tests meet other faults than usual: go test ./optimistic -args -seed 1000.
var FirstSeed = flag.Uint64("seed", 0, "first seed of the long tests")

// Verdicts counts what a run of the property came to.
type Verdicts struct {
	Operations, Success, Conflict, Unknown int
	Violations                             []string
}

func (v *Verdicts) Add(other Verdicts) {
	v.Operations += other.Operations
	v.Success += other.Success
	v.Conflict += other.Conflict
	v.Unknown += other.Unknown
	v.Violations = append(v.Violations, other.Violations...)
}
