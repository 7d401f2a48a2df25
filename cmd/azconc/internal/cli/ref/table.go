package ref

import (
	"regexp"
	"strings"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

// Table names a table, a partition of one, or an entity.
type Table struct {
	Table     string
	Partition string
	Row       string
}

func (r Table) String() string {
	return strings.TrimRight(r.Table+"/"+r.Partition+"/"+r.Row, "/")
}

var TableName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{2,62}$`)

// ParseTable reads table[/partition[/row]] with exactly this many parts. Keys cannot hold a slash: the
// service forbids it.
func ParseTable(arg string, parts int) (Table, error) {
	words := strings.Split(arg, "/")
	shape := []string{"table", "table/partition", "table/partition/row"}[parts-1]
	r := Table{Table: words[0]}
	if !TableName.MatchString(r.Table) {
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
		if key == "" {
			return r, fail.Usagef("%q has an empty key", arg)
		}
		if strings.ContainsAny(key, "\\#?") || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return r, fail.Usagef("key %q has a character that the service forbids (\\ # ? or a control character)", key)
		}
	}
	return r, nil
}
