package conformance

import (
	"strings"
	"testing"
)

// section is a part of the suite.
type section struct {
	name    string
	service string // "blob", "table", "queue" or "file"
	slow    bool   // waits in real time, about 15 seconds
	ask     func(t *testing.T, h harness)

	pages map[string]string // pages of the REST reference by part; "" is for the rest
}

// sections are all parts of the suite.
func sections() []section {
	all := []section{table("blob"), table("container")}
	for _, name := range []string{"life", "lease", "versions", "pairs", "sources", "positions", "snapshots", "uncommitted", "content", "tags"} {
		all = append(all, script(name, "blob", inContainer))
	}
	expiry := script("expiry", "blob", inContainer)
	expiry.slow = true
	return append(all, expiry,
		script("table", "table", inTables), script("entity", "table", inTables), script("types", "table", inTables), script("limits", "table", inTables),
		script("queries", "table", inTables), script("transactions", "table", inTables),
		script("queue", "queue", inQueue), script("file", "file", inShare))
}

// table is a section of operations by conditions.
func table(name string) section {
	s := section{name: name, service: "blob", pages: map[string]string{}, ask: func(t *testing.T, h harness) { matrix(t, h, name) }}
	for _, op := range operations(name) {
		s.pages[op.name] = op.page
	}
	return s
}

// script is a section of rules, whose first line is the page of the REST reference.
func script(name, service string, in func(*testing.T, harness) *world) section {
	lines := read(name)
	return section{name: name, service: service, pages: map[string]string{"": strings.TrimSpace(lines[0])},
		ask: func(t *testing.T, h harness) { in(t, h).run(t, lines[1:]) }}
}

// sourceOf returns the page of the REST reference for a result in the part with this name.
func (s section) sourceOf(part string) string {
	if page, ok := s.pages[part]; ok {
		return page
	}
	return s.pages[""]
}
