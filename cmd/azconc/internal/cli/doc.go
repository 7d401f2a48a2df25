// Package cli is the frame of azconc's command line: connection and clients, streams, results and reports.
//
// A noun has a package below this one, and a function NewCmd that lists its verbs; package root puts the nouns together. Packages noun
// and lease have the verbs that several nouns have: on metadata, on settings that are one document, and on leases. What all verbs share
// is in packages too: flags has their common flags, ref the names of resources, fail the errors and exit codes, and show the forms of
// values.
//
// A verb is made by On, or by OnAccount if its first argument names no resource. A function returns the command; its flags are variables of
// that function, and three functions follow one another: parse reads the name of the resource, and with Checked the flags are checked
// together; open makes a client; and do carries out the verb and returns a Result, which is printed. The flags are checked before anything
// is sent, and an error is returned as it is: Factory.Report makes of it the message, the hint, the JSON object and the exit code.
//
// stdout carries the result and nothing else. Whatever is printed, content of blobs excepted, passes Streams' redactor, which also
// knows the secrets of this run's connection by value.
package cli
