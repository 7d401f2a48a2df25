// Package arrows holds the shape of this repository: what lies at its top, which package may import which, and a few
// habits that only a program remembers. It is a test alone.
//
// The rules are data, in rules_test.go, each with its reason. A file that breaks one is named with that reason; the way out is
// to change the file, or the rule together with its reason.
package arrows
