// Package markers stores in a table what has become of each message key: which message has claimed it, and whether one
// was handled. It contains the format of a marker, the requests to the table, and a Writer that writes many markers in
// one transaction. What a marker means for a message is decided in package idempotent.
package markers
