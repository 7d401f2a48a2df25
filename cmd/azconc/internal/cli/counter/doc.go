// Package counter has the verbs of counters in several blobs.
package counter
