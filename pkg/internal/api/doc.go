// Package api is a test alone. It writes down the exported declarations, without comments and bodies, and compares those
// of every package that others can import with the files in testdata, so that no change of the Go API goes unnoticed:
//
//	go test ./pkg/internal/api -args -update
package api
