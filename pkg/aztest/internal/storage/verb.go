package storage

import (
	"net/http"
	"slices"
	"strings"
)

// Verbs has the verbs of the operations on a resource, by the value of comp. Names of operations, and so the permissions that they need,
// come from comp where there is one: an operation that was carried out by another verb would need the permissions of another one.
type Verbs map[string]string

// Refuse returns the answer to a request whose verb its operation does not have, or nil.
func (v Verbs) Refuse(r *Request) *Answer {
	verbs, known := v[r.Query.Get("comp")]
	switch {
	case !known:
		return NotImplemented()
	case !slices.Contains(strings.Fields(verbs), r.Method):
		return UnsupportedVerb()
	}
	return nil
}

// UnsupportedVerb is the answer to a verb that a resource does not have.
func UnsupportedVerb() *Answer {
	return Fail(http.StatusMethodNotAllowed, "UnsupportedHttpVerb", "The resource doesn't support specified Http Verb.")
}
