package explore

import (
	"fmt"
	"slices"
)

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
