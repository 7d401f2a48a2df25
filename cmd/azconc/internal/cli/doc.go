// Package cli is azconc's command line.
//
// A command is three parts in one file: an options struct, newXCmd(f, runF) which parses and validates, and xRun(ctx,
// opts) which works and never sees cobra. Tests pass a runF to look at the parsed options alone.
//
// To add one: write <group>_<verb>.go with the three parts, and list its constructor in the group's file (blob.go,
// container.go); a new group is listed in root.go. A run function returns a result through Factory.Print and an error for
// everything else: the prefix, the hint line, the JSON object of a failure and the exit code are made in one place
// (report.go, exit.go) from the error alone. An error that carries facts for -o json implements facts() map[string]any.
//
// stdout carries the result and nothing else. Whatever is printed, content of blobs excepted, passes Streams' redactor,
// which also knows the secrets of this run's connection by value.
package cli
