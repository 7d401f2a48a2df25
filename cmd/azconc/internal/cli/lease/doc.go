// Package lease has the verbs of a lease, for blobs, containers, files and shares.
package lease
