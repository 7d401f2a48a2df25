// Package live shows what changes: as a screen on which a user can act, or as tables in a pipe.
//
// It knows sections, rows and actions, and nothing of locks or queues. A view is fetched in parts, each by itself, so that one
// that fails leaves the others as they are; its own rows stay, and the error says since when they are no longer known.
//
// A round is the requests of one refresh. The next one begins an interval after the last one has ended, so rounds do not overlap,
// and none begins while a question is open. The counts of requests are those of the command: what it has sent, answered or not.
//
// Rows and errors carry text that others have stored. Everything that is shown passes through show.Cell and the redactor.
package live
