package ref

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

// File names a share, or a file or directory in it.
type File struct {
	Share string
	Path  string
}

func (r File) String() string { return strings.TrimSuffix(r.Share+"/"+r.Path, "/") }

// ParseShare reads the name of a share.
func ParseShare(arg string) (File, error) {
	r, err := ParseShareOrFile(strings.TrimSuffix(arg, "/"))
	if err == nil && r.Path != "" {
		return r, fail.WithHint(fail.Usagef("%q names a file, not a share", r.String()), "the share is "+r.Share)
	}
	return r, err
}

// ParseFile reads share/path.
func ParseFile(arg string) (File, error) {
	r, err := ParseShareOrFile(arg)
	if err == nil && r.Path == "" {
		return r, fail.WithHint(fail.Usagef("%q names a share, not a file", r.Share), "a file is named share/path")
	}
	return r, err
}

// ParseShareOrFile reads share[/path] and checks it against the rules of "Naming and referencing shares, directories, files, and metadata".
func ParseShareOrFile(arg string) (File, error) {
	if isURL(arg) {
		return File{}, fail.WithHint(fail.Usagef("a file is given by its path, not by a URL"), "the account comes from --account-name or --connection-string")
	}
	var r File
	r.Share, r.Path, _ = strings.Cut(arg, "/")
	if ValidContainer(r.Share) != nil || strings.HasPrefix(r.Share, "$") {
		return r, cmp.Or(secretGiven(arg), fail.WithHint(fail.Usagef("%q is not a share's name", r.Share), nameRule))
	}
	if !utf8.ValidString(r.Path) || utf8.RuneCountInString(r.Path) > 2048 {
		return r, fail.Usagef("the path is not UTF-8 of up to 2048 characters")
	}
	if r.Path == "" {
		return r, nil
	}
	for _, name := range strings.Split(r.Path, "/") {
		switch {
		case name == "", name == ".", name == "..":
			return r, fail.Usagef("the path %q has a part that is empty, . or ..", r.Path)
		case utf8.RuneCountInString(name) > 255:
			return r, fail.Usagef("a part of the path has more than 255 characters")
		case strings.ContainsAny(name, `"\:|<>*?`):
			return r, fail.Usagef(`the path %q has one of the characters " \ : | < > * ?, which no name can have`, r.Path)
		}
	}
	return r, nil
}
