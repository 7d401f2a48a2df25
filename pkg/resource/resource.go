// Package resource names storage objects by their path, never by their URL.
//
// A client's URL may have a shared access signature in its query, so a URL must not appear in an error, a log or on a
// terminal. The path says what a person needs: "container/blob", "table", "queue".
//
// The package is no API: it is here because several packages of this module share it, and may change in any release.
package resource

import (
	"net"
	"net/url"
	"strings"
)

// Path returns the path of a client's URL without the host, the account and the query: "container/blob/name" for a
// blob, "container" for a container. It never returns any part of the query.
//
// Emulators put the account first in the path and are addressed by an IP address or as localhost. The account is
// dropped there, as by the SDK's own URL parser. For a URL that cannot be parsed Path returns "(unnamed resource)",
// because the URL might have a secret in it.
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

// Account returns what tells the account of a URL from others: the host, on an emulator with the account after it.
func Account(u *url.URL) string {
	if !emulator(u.Hostname()) {
		return u.Host
	}
	account, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	return u.Host + "/" + account
}

// emulator reports whether URLs with this host have the account as the first element of their path.
func emulator(host string) bool {
	return host == "localhost" || net.ParseIP(host) != nil
}
