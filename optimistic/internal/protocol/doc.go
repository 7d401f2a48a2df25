// Package protocol sends conditional writes and finds out what became of them. Package optimistic and the packages below
// it are made of it.
//
// A Call is one operation under way. It sends a Change (commit.go), and judges it by the lineage that a look at the
// resource finds (judge.go, lineage_proof.go) when a response was lost or a write was refused. The doc comment of package
// optimistic describes the protocol.
package protocol
