// Package readme is a test of the repository's README files: that their Go snippets are code that runs, as an example or in the
// program of a newcomer, and that their links lead somewhere. A test of cmd/azconc runs that program and the shell snippets.
package readme
