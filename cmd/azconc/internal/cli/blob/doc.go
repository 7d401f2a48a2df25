// Package blob has the verbs of azconc blob: content, metadata, headers, tags, blocks, pages, snapshots and copies.
package blob
