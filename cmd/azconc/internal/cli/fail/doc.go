// Package fail turns errors into what the user gets: a message, a hint, a JSON object and an exit code.
//
// An error that carries facts for -o json implements Facts() map[string]any. Judge is the only place that assigns exit codes.
package fail
