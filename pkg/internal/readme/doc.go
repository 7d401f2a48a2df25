// Package readme is a test of the repository's README files: that their Go snippets are code that runs as an example,
// and that their links lead somewhere. The shell snippets are run by a test of cmd/azconc.
package readme
