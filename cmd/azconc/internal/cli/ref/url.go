package ref

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/resource"
)

// Account is the account in the URL of a queue, a table or an entity.
type Account struct{ Endpoint, SAS string }

// SplitURL splits a URL into the account, with its SAS if it has one, and the path.
func SplitURL(text string) (at Account, name string, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return at, "", fail.Usagef("the resource is not a valid URL")
	}
	prefix, rest := "", strings.TrimPrefix(u.Path, "/")
	if azaccount.PathStyle(u.Hostname()) {
		prefix, rest, _ = strings.Cut(rest, "/")
		prefix = "/" + prefix
	}
	if u.Query().Get("sig") != "" {
		at.SAS = u.RawQuery
	}
	at.Endpoint = u.Scheme + "://" + u.Host + prefix
	return at, strings.TrimSuffix(rest, "/"), nil
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
	if strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://") {
		return resource.Path(arg)
	}
	return arg
}
