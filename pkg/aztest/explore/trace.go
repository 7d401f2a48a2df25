package explore

import (
	"crypto/sha256"
	"maps"
	"slices"
)

// digest stands for a sequence of events.
type digest [16]byte

func (d digest) then(event string) digest {
	h := sha256.Sum256(append(append(make([]byte, 0, 128), d[:]...), event...))
	return digest(h[:16])
}

// trace is what has happened so far, up to commutation: on each resource and to each client, in order.
type trace struct {
	resources map[string]digest
	clients   []digest
}

func newTrace(clients int) trace {
	return trace{resources: map[string]digest{everything: {}}, clients: make([]digest, clients)}
}

// change notes that a request has changed a resource. A change of everything is one of every resource.
func (t *trace) change(resource, event string) {
	if resource != everything {
		t.resources[resource] = t.of(resource).then(event)
		return
	}
	for name, d := range t.resources {
		t.resources[name] = d.then(event)
	}
}

// of stands for what has happened on a resource.
func (t *trace) of(resource string) digest {
	if d, ok := t.resources[resource]; ok {
		return d
	}
	return t.resources[everything]
}

// observe notes what a client has seen of a resource, so that requests that change nothing commute.
func (t *trace) observe(client int, event, resource string) {
	seen := t.of(resource)
	if resource == everything {
		seen = t.sum(nil)
	}
	t.happen(client, event+string(seen[:]))
}

func (t *trace) happen(client int, event string) { t.clients[client] = t.clients[client].then(event) }

// pass notes that time has passed for everybody.
func (t *trace) pass(event string) {
	t.change(everything, event)
	for i := range t.clients {
		t.happen(i, event)
	}
}

// follow notes what a choice does to a request. carry carries the request out: it reports whether that changed the
// resource, and whether it can tell. If it cannot, follow returns false.
func (t *trace) follow(k Kind, p *pending, carry func(t *trace) (changed, known bool)) bool {
	if k != LoseRequest && k != Hold && k != Kill {
		changed, known := carry(t)
		if !known {
			return false
		}
		if changed {
			t.change(p.resource, p.label)
		}
	}
	switch client := p.client.Number; k {
	case Deliver:
		t.observe(client, p.label, p.resource)
	case Twice:
		t.happen(client, "twice "+p.label)
	case LoseResponse, LoseRequest, Hold:
		t.happen(client, "broken "+p.label)
	case Kill:
		t.happen(client, "kill "+p.label)
	}
	return true
}

// before stands for what a request meets when it is carried out.
func (t *trace) before(p *pending) digest {
	if p.resource == everything {
		return t.sum(nil).then(p.label)
	}
	return t.of(p.resource).then(p.label)
}

func (t *trace) clone() trace {
	return trace{resources: maps.Clone(t.resources), clients: slices.Clone(t.clients)}
}

// sum is the same for two runs in which the same happened on every resource and to every client in the same order, and
// the same requests are held back.
func (t *trace) sum(held []*pending) (d digest) {
	for _, name := range slices.Sorted(maps.Keys(t.resources)) {
		of := t.resources[name]
		if name != everything && of == t.resources[everything] {
			continue // as if it had never been asked for
		}
		d = d.then(name + string(of[:]))
	}
	for _, of := range t.clients {
		d = d.then(string(of[:]))
	}
	labels := make([]string, len(held))
	for i, p := range held {
		labels[i] = p.label
	}
	slices.Sort(labels)
	for _, label := range labels {
		d = d.then(label)
	}
	return d
}
