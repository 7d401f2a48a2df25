package conformance

import "strings"

// Section is a part of the suite.
type Section struct {
	Name    string
	Service string // "blob", "table", "queue" or "file"
	Source  string // page of the REST reference; "" where each part is named like its page
	Slow    bool   // waits in real time, about 15 seconds
	Run     func(t T, h Harness)
}

// Sections are all parts of the suite.
func Sections() []Section {
	const headers = "Specifying conditional headers for Blob service operations"
	return []Section{
		{Name: "blob", Service: "blob", Run: Blob},
		{Name: "container", Service: "blob", Run: Container},
		{Name: "lease", Service: "blob", Source: "Lease Blob", Run: Lease},
		{Name: "versions", Service: "blob", Source: headers, Run: Versions},
		{Name: "pairs", Service: "blob", Source: headers, Run: Pairs},
		{Name: "sources", Service: "blob", Source: "Copy Blob", Run: Sources},
		{Name: "positions", Service: "blob", Source: "Append Block", Run: Positions},
		{Name: "snapshots", Service: "blob", Source: "Snapshot Blob", Run: Snapshots},
		{Name: "uncommitted", Service: "blob", Source: "Put Block", Run: Uncommitted},
		{Name: "content", Service: "blob", Source: "Get Blob", Run: Content},
		{Name: "tags", Service: "blob", Source: "Set Blob Tags", Run: Tags},
		{Name: "expiry", Service: "blob", Source: "Lease Blob", Slow: true, Run: Expiry},
		{Name: "table", Service: "table", Source: "Inserting and updating entities", Run: Table},
		{Name: "queue", Service: "queue", Source: "Update Message", Run: Queue},
		{Name: "file", Service: "file", Source: "Lease File", Run: File},
	}
}

// pages are the parts whose name is not that of the page of the REST reference with their rule.
var pages = map[string]string{
	"Get Blob Properties (size)": "Set Blob Properties", "Set Blob Properties (sequence number)": "Set Blob Properties",
	"Lease Blob": "Lease Blob", "Renew Blob Lease": "Lease Blob", "Change Blob Lease": "Lease Blob", "Break Blob Lease": "Lease Blob", "Release Blob Lease": "Lease Blob",
	"its lease does not guard its blobs": "Lease Container", "its name stays taken for a while": "Delete Container",
	"tables": "Create Table", "conditions": "Update Entity", "versions": "Insert Or Merge Entity", "types": "Payload format for Table service operations",
	"limits": "Understanding the Table service data model", "queries": "Query Entities", "transactions": "Performing entity group transactions",
	"contention": "Update Entity",
}

// SourceOf returns the page of the REST reference for a result in the part with this name.
func (s Section) SourceOf(part string) string {
	if page, ok := pages[part]; ok && (s.Source == "" || s.Name == "table") {
		return page
	}
	if s.Source != "" {
		return s.Source
	}
	page, _, _ := strings.Cut(part, " (")
	return page
}
