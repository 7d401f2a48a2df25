package explore

import (
	"fmt"
	"slices"
)

// Kind is something that can happen to a request.
type Kind uint8

// The kinds; the package's documentation says what they do.
const (
	Deliver Kind = iota
	LoseResponse
	LoseRequest
	Hold
	Twice
	Kill
	Wait
	arrive // a request that was held back
	drop   // the requests that are held back at the end
)

var kindNames = [...]string{"deliver", "lose response", "lose request", "hold", "twice", "kill", "wait", "arrive", "drop"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// choice is one thing that can happen next.
type choice struct {
	kind Kind
	p    *pending // nil for Wait and drop
}

// key identifies the choice in every run that follows the same choices up to here.
func (c choice) key() string {
	if c.p == nil {
		return c.kind.String()
	}
	return c.kind.String() + " " + c.p.label
}

func (c choice) String() string {
	if c.p == nil {
		return c.kind.String()
	}
	return fmt.Sprintf("client %d  %-13s  %s %s", c.p.client.Number, c.kind, c.p.op, c.p.shown)
}

// position is how far a run has come. Two runs with equal positions can continue in the same ways.
type position struct {
	trace       trace
	held        []*pending // the requests that may yet arrive
	faults      int        // used so far
	last        int        // the client whose request was chosen last; -1 if preemptions are not bounded
	preemptions int        // used so far
}

// count notes a choice among the requests at the gate, except for what it does to the service and the clients.
func (s *position) count(c choice, o Options, gate []*pending) {
	switch c.kind {
	case Wait:
		s.faults++
	case drop:
		s.held = nil
	case arrive:
		s.held = slices.DeleteFunc(slices.Clone(s.held), func(p *pending) bool { return p.label == c.p.label })
	default:
		if c.kind != Deliver {
			s.faults++
		}
		if c.kind == Hold || c.kind == Kill {
			s.held = append(slices.Clone(s.held), c.p)
		}
		if client := c.p.client.Number; o.Preemptions != 0 && client != s.last {
			if slices.ContainsFunc(gate, func(p *pending) bool { return p.client.Number == s.last }) {
				s.preemptions++
			}
			s.last = client
		}
	}
}

func (s *position) clone() position {
	out := *s
	out.trace = s.trace.clone()
	return out
}

func (s *position) sum() digest {
	return s.trace.sum(s.held).then(fmt.Sprint(s.faults, s.last, s.preemptions))
}
