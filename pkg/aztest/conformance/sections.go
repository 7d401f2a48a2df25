// Package conformance tests a storage service against the article "Managing concurrency in Azure Storage": which
// operation returns an ETag, which conditions it supports, whether it checks a lease, and with which status and code it
// refuses. What is asked stands in rules/*.txt, as requests and expected responses; rules.go says how to read and to add
// them.
//
// The same suite runs on the in-memory service of aztest, on Azurite, and on a real account with scripts/conformance. The
// expectations are the service's. Where Azurite is known to differ, its response is listed next to the expectation
// with the reason, and is asserted on Azurite, so that a change is noticed.
//
// It is public because a program (scripts/conformance) and the tests of aztest share it, and without a promise: its
// functions follow what they need, in any version.
package conformance

import "strings"

// Section is a part of the suite.
type Section struct {
	Name    string
	Service string // "blob", "table", "queue" or "file"
	Slow    bool   // waits in real time, about 15 seconds
	Run     func(t T, h Harness)

	pages map[string]string // pages of the REST reference by part; "" is for the rest
}

// Sections are all parts of the suite.
func Sections() []Section {
	all := []Section{table("blob"), table("container")}
	for _, name := range []string{"life", "lease", "versions", "pairs", "sources", "positions", "snapshots", "uncommitted", "content", "tags"} {
		all = append(all, script(name, "blob", inContainer))
	}
	expiry := script("expiry", "blob", inContainer)
	expiry.Slow = true
	return append(all, expiry,
		script("table", "table", inTables), script("entity", "table", inTables), script("types", "table", inTables), script("limits", "table", inTables),
		script("queries", "table", inTables), script("transactions", "table", inTables),
		script("queue", "queue", inQueue), script("file", "file", inShare))
}

// table is a section of operations by conditions.
func table(name string) Section {
	s := Section{Name: name, Service: "blob", pages: map[string]string{}, Run: func(t T, h Harness) { matrix(t, h, name) }}
	for _, op := range operations(name) {
		s.pages[op.name] = op.page
	}
	return s
}

// script is a section of rules, whose first line is the page of the REST reference.
func script(name, service string, in func(T, Harness) *world) Section {
	lines := read(name)
	return Section{Name: name, Service: service, pages: map[string]string{"": strings.TrimSpace(lines[0])},
		Run: func(t T, h Harness) { in(t, h).run(t, lines[1:]) }}
}

// SourceOf returns the page of the REST reference for a result in the part with this name.
func (s Section) SourceOf(part string) string {
	if page, ok := s.pages[part]; ok {
		return page
	}
	return s.pages[""]
}
