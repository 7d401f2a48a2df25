// Package history judges the histories of concurrent clients: what a service told them about a number, and when they
// held a lock. It finds whether any order of events explains what they saw.
//
//	calls = append(calls, history.Call{Client: 1, Kind: history.Add, Value: 1, From: began, To: ended})
//	err := history.Linearizable(calls, time.Minute)
//
// A test records what its clients did, also what ended in an unknown outcome, and lets this package judge it at the
// end. Plant the mistake that a test is about, and see that the history is refused: a judge that never convicts proves
// nothing.
package history

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Kind is what a Call does to the number.
type Kind uint8

// The kinds of calls.
const (
	Add  Kind = iota + 1 // adds Value
	Set                  // sets the number to Value
	Read                 // reads Value
)

// Open is the To of a call whose outcome the client does not know. It may take effect at any time after From, or never.
const Open int64 = math.MaxInt64

// Call is one call of a client that changes or reads a number. The number is 0 at first.
type Call struct {
	Client  int
	Kind    Kind
	Value   int
	Refused bool // the client received an error that says that the call has no effect

	// From and To enclose the call, by one clock for all clients. Only the order matters; any unit will do.
	From, To int64
}

// ErrUndecided means that the time was not enough to judge a history.
var ErrUndecided = errors.New("the history was not judged within its time")

// Linearizable returns nil if each call can have taken effect at one moment between its From and its To, with the
// results that its client saw. Otherwise the error lists the calls. The time that it needs grows quickly with the number
// of calls that overlap, Open ones above all; after limit it returns ErrUndecided.
func Linearizable(calls []Call, limit time.Duration) error {
	var ops []porcupine.Operation
	for _, c := range calls {
		ops = append(ops, porcupine.Operation{ClientId: c.Client, Input: c, Call: c.From, Return: c.To})
	}
	switch porcupine.CheckOperationsTimeout(number, ops, limit) {
	case porcupine.Ok:
		return nil
	case porcupine.Illegal:
		return fmt.Errorf("no order of these calls explains their results:\n%s", list(calls))
	default:
		return fmt.Errorf("%w: %d calls in %v", ErrUndecided, len(calls), limit)
	}
}

var number = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, in, _ any) (bool, any) {
		s, c := state.(int), in.(Call)
		switch {
		case c.Kind == Read:
			return c.Value == s, s
		case c.Refused:
			return true, s
		case c.Kind == Set:
			return true, c.Value
		default:
			return true, s + c.Value
		}
	},
}

func list(calls []Call) string {
	calls = slices.Clone(calls)
	slices.SortFunc(calls, func(a, b Call) int { return int(min(max(a.From-b.From, -1), 1)) })
	var b strings.Builder
	for _, c := range calls {
		to := fmt.Sprint(c.To)
		if c.To == Open {
			to = "open"
		}
		note := ""
		if c.Refused {
			note = ", refused"
		}
		fmt.Fprintf(&b, "client %3d [%d, %s] %s %d%s\n", c.Client, c.From, to, c.Kind, c.Value, note)
	}
	return b.String()
}

// String names the kind.
func (k Kind) String() string {
	return map[Kind]string{Add: "add", Set: "set", Read: "read"}[k]
}
