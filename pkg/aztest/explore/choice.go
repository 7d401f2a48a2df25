package explore

import "fmt"

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
