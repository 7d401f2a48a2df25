// Package resource names storage objects by their path, never by their URL.
//
// A client's URL may carry a shared access signature in its query, so a URL must not reach an error text, a log or a
// terminal. The path says what a person needs: "container/blob", "table", "queue".
package resource

import (
	"net"
	"net/url"
	"strings"
)

// Path returns the path of a client's URL without the account, the query and the host: "container/blob/name" for a
// blob, "container" for a container. It never returns any part of the query.
//
// Emulators put the account first in the path and are reached by an IP address or as localhost; the account is dropped
// there, as the SDK's own URL parser does. A URL that cannot be parsed yields "(unnamed resource)", because printing
// it might print a secret.
func Path(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "(unnamed resource)"
	}
	path := strings.TrimPrefix(u.Path, "/")
	if emulator(u.Hostname()) {
		_, path, _ = strings.Cut(path, "/")
	}
	if path == "" {
		return "(account)"
	}
	return path
}

// emulator tells whether URLs with this host carry the account as the first element of their path.
func emulator(host string) bool {
	return host == "localhost" || net.ParseIP(host) != nil
}
