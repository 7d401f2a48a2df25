package cli

import (
	"maps"
	"net/url"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// accountURL is the account in a URL that named a queue, a table or an entity.
type accountURL struct{ endpoint, sas string }

// localNames replaces the URLs among the arguments of a queue or table command by the names in them. The account that
// they are of is this run's for that service. Blobs, containers, files and shares parse their URLs themselves, since one
// command may copy between accounts.
func (f *Factory) localNames(cmd *cobra.Command, args []string) error {
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		args = args[:dash]
	}
	words := strings.Fields(cmd.CommandPath())
	if len(words) < 2 || words[1] != string(queueService) && words[1] != string(tableService) {
		return nil
	}
	s := service(words[1])
	for i, arg := range args {
		if !strings.HasPrefix(arg, "http://") && !strings.HasPrefix(arg, "https://") {
			continue
		}
		at, name, err := splitURL(arg)
		if err != nil {
			return err
		}
		if s == tableService {
			name = entityPath(name)
		}
		f.Redactor.know(secretsOf("", at.sas)...)
		if given, ok := f.urls[s]; ok && given != at {
			return WithHint(Usagef("the URLs name two accounts, or carry two signatures"), "the command works within one account")
		}
		if f.urls == nil {
			f.urls = map[service]accountURL{}
		}
		f.urls[s], args[i] = at, name
	}
	return nil
}

// splitURL takes a URL apart into the account, with the SAS if there is one, and the path in it.
func splitURL(text string) (at accountURL, name string, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return at, "", Usagef("the resource is not a valid URL")
	}
	prefix, rest := "", strings.TrimPrefix(u.Path, "/")
	if pathStyle(u.Hostname()) {
		prefix, rest, _ = strings.Cut(rest, "/")
		prefix = "/" + prefix
	}
	if u.Query().Get("sig") != "" {
		at.sas = u.RawQuery
	}
	at.endpoint = u.Scheme + "://" + u.Host + prefix
	return at, strings.TrimSuffix(rest, "/"), nil
}

var entityAddress = regexp.MustCompile(`^([^/(]+)\(PartitionKey='((?:[^']|'')*)',\s*RowKey='((?:[^']|'')*)'\)$`)

// entityPath turns the address of an entity, jobs(PartitionKey='eu',RowKey='17'), into jobs/eu/17.
func entityPath(name string) string {
	m := entityAddress.FindStringSubmatch(name)
	if m == nil {
		return strings.TrimSuffix(name, "()")
	}
	plain := func(key string) string { return strings.ReplaceAll(key, "''", "'") }
	return m[1] + "/" + plain(m[2]) + "/" + plain(m[3])
}

// connectionTo is the connection for a service, at the account of a URL if the resource was given as one.
func (f *Factory) connectionTo(s service) (*connection, error) {
	at, ok := f.urls[s]
	if ok && at.sas != "" {
		return &connection{endpoint: map[service]string{s: at.endpoint}, sas: at.sas}, nil
	}
	c, err := f.connection()
	if err != nil || !ok {
		return c, err
	}
	if err := c.sameAccount(s, at.endpoint); err != nil {
		return nil, err
	}
	out := *c
	out.endpoint = maps.Clone(c.endpoint)
	out.endpoint[s] = at.endpoint
	return &out, nil
}

// sameAccount refuses to show a credential to another account than it belongs to. A token is good for any.
func (c *connection) sameAccount(s service, endpoint string) error {
	own := strings.TrimSuffix(c.endpoint[s], "/")
	if own == "" || c.login || strings.EqualFold(own, endpoint) {
		return nil
	}
	return WithHint(Usagef("the URL names a different account than the credential"), "give --auth-mode login, or a URL with a SAS")
}
