package ref

import (
	"cmp"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/resource"
)

// Account is the account in the URL of a queue, a table or an entity.
type Account struct{ Endpoint, SAS string }

// SplitURL splits a URL into the account, with its SAS if it has one, and the path.
func SplitURL(text string) (u *url.URL, at Account, path string, err error) {
	if u, err = url.Parse(text); err != nil {
		return nil, at, "", fail.Usagef("the resource is not a valid URL")
	}
	at.Endpoint, path = u.Scheme+"://"+u.Host, strings.TrimPrefix(u.Path, "/")
	if azaccount.PathStyle(u.Hostname()) {
		account, rest, _ := strings.Cut(path, "/")
		at.Endpoint, path = at.Endpoint+"/"+account, rest
	}
	if u.Query().Get("sig") != "" {
		at.SAS = u.RawQuery
	}
	return u, at, path, nil
}

// IsURL reports whether an argument is a URL, and not the name of a resource.
func IsURL(arg string) bool {
	return strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://")
}

var entityAddress = regexp.MustCompile(`^([^/(]+)\(PartitionKey='((?:[^']|'')*)',\s*RowKey='((?:[^']|'')*)'\)$`)

// EntityPath turns the address of an entity, jobs(PartitionKey='eu',RowKey='17'), into jobs/eu/17.
func EntityPath(name string) string {
	m := entityAddress.FindStringSubmatch(name)
	if m == nil {
		return strings.TrimSuffix(name, "()")
	}
	plain := func(key string) string { return strings.ReplaceAll(key, "''", "'") }
	return m[1] + "/" + plain(m[2]) + "/" + plain(m[3])
}

// Display returns an argument as messages name it. Of a URL only the path remains.
func Display(arg string) string {
	if IsURL(arg) {
		return resource.Path(arg)
	}
	return arg
}

// Table names a table, a partition of one, or an entity.
type Table struct {
	Table     string
	Partition string
	Row       string
}

func (r Table) String() string {
	return strings.TrimRight(r.Table+"/"+r.Partition+"/"+r.Row, "/")
}

var tableName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{2,62}$`)

// ParseTable reads table[/partition[/row]] with exactly this many parts.
func ParseTable(arg string, parts int) (Table, error) {
	arg = show.Unquoted(arg)
	words := strings.Split(arg, "/")
	shape := []string{"table", "table/partition", "table/partition/row"}[parts-1]
	r := Table{Table: words[0]}
	if !tableName.MatchString(r.Table) {
		return r, fail.WithHint(fail.Usagef("%q is not a table's name", r.Table), "a name is 3 to 63 letters and digits, a letter first")
	}
	if len(words) != parts {
		return r, fail.Usagef("%q is not of the form %s", arg, shape)
	}
	if parts > 1 {
		r.Partition = words[1]
	}
	if parts > 2 {
		r.Row = words[2]
	}
	for _, key := range words[1:] {
		if err := CheckKey(key); err != nil {
			return r, err
		}
	}
	return r, nil
}

// CheckKey refuses a PartitionKey or RowKey that the service does not take, or would store as another one ("Understanding the Table
// service data model").
func CheckKey(key string) error {
	switch {
	case key == "":
		return fail.Usagef("the key of an entity is empty")
	case !utf8.ValidString(key):
		return fail.WithHint(fail.Usagef("the key %q is not UTF-8, and cannot be stored as it is", key), "encode it, such as in hex")
	case len(utf16.Encode([]rune(key))) > 512:
		return fail.Usagef("the key %.20q… is too long: the limit is 512 characters", key)
	case strings.ContainsAny(key, `/\#?`) || strings.ContainsFunc(key, unicode.IsControl):
		return fail.WithHint(fail.Usagef(`the key %q has / \ # ? or a control character, which the service forbids`, key), "encode it, such as / as %2F")
	}
	return nil
}

// File names a share, or a file or directory in it.
type File struct {
	Share string
	Path  string
}

func (r File) String() string { return strings.TrimSuffix(r.Share+"/"+r.Path, "/") }

// ParseShare reads the name of a share.
func ParseShare(arg string) (File, error) {
	r, err := ParseShareOrFile(strings.TrimSuffix(show.Unquoted(arg), "/"))
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
	if arg = show.Unquoted(arg); IsURL(arg) {
		return File{}, fail.WithHint(fail.Usagef("a file is given by its path, not by a URL"), "the account comes from --account-name or --connection-string")
	}
	var r File
	r.Share, r.Path, _ = strings.Cut(arg, "/")
	if ValidContainer(r.Share) != nil || strings.HasPrefix(r.Share, "$") {
		return r, cmp.Or(secretGiven(arg), fail.WithHint(fail.Usagef("%q is not a share's name", r.Share), NameRule))
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
			return r, fail.Usagef(`the path %q has a part that is empty, or "." or ".."`, r.Path)
		case utf8.RuneCountInString(name) > 255:
			return r, fail.Usagef("a part of the path has more than 255 characters")
		case strings.ContainsAny(name, `"\:|<>*?`):
			return r, fail.Usagef(`the path %q has one of the characters " \ : | < > * ?, which no name can have`, r.Path)
		}
	}
	return r, nil
}
