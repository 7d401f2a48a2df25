// Package complete answers the request for completions that a shell sends when TAB is pressed: words that the help lists, and
// names of containers, blobs, locks, tables, queues, shares and files that the account has.
//
// The placeholders in a usage line, such as <container/blob>, say what each argument is, and those in the help of a flag what
// its value is. A verb therefore needs nothing but its usage line to be completed.
//
// A shell that gets no answer offers the names of local files, which are wrong for the names of an account. So every answer
// says that there are none, unless a local file is asked for. An account that does not answer in time has no names.
package complete
