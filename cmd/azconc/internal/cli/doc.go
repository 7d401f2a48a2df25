// Package cli is the frame of azconc's command line: connection and clients, streams, results and reports.
//
// A noun has a package below this one with a file for each verb, and a function NewCmd that lists them; package root puts the nouns
// together. What the verbs share is in packages too: flags has their common flags, ref the names of resources, fail the errors
// and exit codes, and show the forms of values.
//
// A command is a Verb in a file of its own, which holds three things: its options, a function xVerb that says how flags and arguments
// become options, and xRun, which carries it out and never sees cobra. A run function returns a result through Factory.Print and an
// error for everything else: Factory.Report makes of it the message, the hint, the JSON object and the exit code.
//
// stdout carries the result and nothing else. Whatever is printed, content of blobs excepted, passes Streams' redactor, which also
// knows the secrets of this run's connection by value.
package cli
