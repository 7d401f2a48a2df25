// Package api writes down the exported declarations of a package, without comments and bodies. Its test compares those
// of every package that others can import with the files in testdata, so that no change of the Go API goes unnoticed:
//
//	go test ./pkg/internal/api -args -update
package api
