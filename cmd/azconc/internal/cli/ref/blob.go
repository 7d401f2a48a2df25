// Package ref parses the names and URLs of blobs, containers, files, shares, tables and entities.
package ref

import (
	"cmp"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/azerr"
)

// Blob names a container, or a blob in it. The other fields are set only if it was given as a URL.
type Blob struct {
	Container string
	Blob      string
	Snapshot  string
	Version   string

	Endpoint string // of the account; empty: the connection's
	SAS      string
}

func (r Blob) String() string {
	switch {
	case r.Blob == "":
		return r.Container
	case r.Snapshot != "":
		return r.Container + "/" + r.Blob + snapshotMark + r.Snapshot
	case r.Version != "":
		return r.Container + "/" + r.Blob + "?versionid=" + r.Version
	}
	return r.Container + "/" + r.Blob
}

// snapshotMark separates the name of a blob from the time of a snapshot, in URLs and in the output of blob list.
const snapshotMark = "?snapshot="

var snapshotTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$`)

// ParseBlob reads container/blob/path or a blob's URL.
func ParseBlob(arg string) (Blob, error) {
	r, err := parseBlobRef(arg)
	switch {
	case err != nil && r.Container == arg && len(arg) <= longestContainer:
		return r, fail.WithHint(fail.Usagef("%q names no container", arg), "a blob is named container/blob, as in "+show.Quote("jobs/"+arg))
	case err != nil:
		return r, err
	case r.Blob == "":
		return r, fail.WithHint(fail.Usagef("%q names a container, not a blob", r.Container), "a blob is named container/blob")
	}
	return r, nil
}

// ParseContainer reads a container's name or URL.
func ParseContainer(arg string) (Blob, error) {
	r, err := parseBlobRef(strings.TrimSuffix(show.Unquoted(arg), "/"))
	if err != nil {
		return r, err
	}
	if r.Blob != "" {
		return r, fail.WithHint(fail.Usagef("%q names a blob, not a container", r.String()), "the container is "+r.Container)
	}
	return r, nil
}

// ParseWritable is ParseBlob for a command that changes the blob. It refuses snapshots and versions.
func ParseWritable(arg string) (Blob, error) {
	r, err := ParseBlob(arg)
	if err == nil && (r.Snapshot != "" || r.Version != "") {
		return r, fail.Usagef("%s is a snapshot or a version, which cannot be changed", Blob{Container: r.Container, Blob: r.Blob})
	}
	return r, err
}

func parseBlobRef(arg string) (Blob, error) {
	var r Blob
	arg = show.Unquoted(arg)
	path := arg
	if IsURL(arg) {
		u, at, name, err := SplitURL(arg)
		if err != nil {
			return r, err
		}
		q := u.Query()
		r.Snapshot, r.Version = q.Get("snapshot"), q.Get("versionid")
		if at.SAS != "" {
			q.Del("snapshot")
			q.Del("versionid")
			r.SAS = q.Encode()
		}
		r.Endpoint, path = at.Endpoint, name
	}
	r.Container, r.Blob, _ = strings.Cut(path, "/")
	if r.Endpoint == "" {
		r.Blob = show.Named(r.Blob)
	}
	if name, time, ok := strings.Cut(r.Blob, snapshotMark); ok && snapshotTime.MatchString(time) {
		r.Blob, r.Snapshot = name, time // no blob has such a name by accident
	}
	if r.Container == "" && strings.HasPrefix(path, "/") {
		return r, fail.WithHint(fail.Usagef("the resource begins with a slash"), "a blob is named container/blob")
	}
	if strings.HasSuffix(path, "/") && r.Blob == "" {
		return r, fail.Usagef("the name of the blob is missing after %q", r.Container+"/")
	}
	if err := ValidContainer(r.Container); err != nil {
		return r, cmp.Or(secretGiven(path), err)
	}
	if utf8.RuneCountInString(r.Blob) > 1024 {
		return r, fail.Usagef("the blob's name has %d characters: the limit is 1024", utf8.RuneCountInString(r.Blob))
	}
	if !utf8.ValidString(r.Blob) {
		return r, fail.Usagef("the blob's name is not UTF-8")
	}
	return r, nil
}

// secretGiven refuses a name that has a secret in it. The error of a part of the name would show a part of the secret, which is
// not recognized as one.
func secretGiven(name string) error {
	if azerr.Redact(name) == name {
		return nil
	}
	return fail.WithHint(fail.Usagef("the resource has the form of an account key"), "set AZURE_STORAGE_KEY to a key; the argument is the name of a resource")
}

// longestContainer is the length of the longest name. A text that is longer may be a secret, so it is not repeated.
const longestContainer = 63

var containerName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// NameRule is the rule for the names of containers, queues and shares ("Naming and referencing containers, blobs, and metadata").
const NameRule = "a name has 3 to 63 lower-case letters, digits and single hyphens, and begins and ends with a letter or digit"

// ValidContainer checks the name of a container.
func ValidContainer(name string) error {
	switch {
	case name == "$root", name == "$web", name == "$logs", name == "$blobchangefeed":
		return nil
	case name == "":
		return fail.WithHint(fail.Usagef("the container's name is empty"), NameRule)
	case len(name) > longestContainer:
		return fail.WithHint(fail.Usagef("the container's name is too long: %d characters", len(name)), NameRule)
	case len(name) < 3 || !containerName.MatchString(name):
		return fail.WithHint(fail.Usagef("%q is not a container's name", name), NameRule)
	}
	return nil
}
