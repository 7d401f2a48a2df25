// Package protocol sends conditional writes and determines their outcomes. Package optimistic and the packages below it
// are built on it.
//
// A Call is one operation in progress. It sends a Change (commit.go). If a response was lost or a write was refused, it
// looks at the resource and judges the Change by the lineage that it finds (judge.go, lineage.go). The doc
// comment of package optimistic describes the protocol.
package protocol
