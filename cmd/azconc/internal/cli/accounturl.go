package cli

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/pkg/azaccount"
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
	if len(words) < 2 || words[1] != string(azaccount.Queue) && words[1] != string(azaccount.Table) {
		return nil
	}
	s := azaccount.Service(words[1])
	for i, arg := range args {
		if !strings.HasPrefix(arg, "http://") && !strings.HasPrefix(arg, "https://") {
			continue
		}
		at, name, err := splitURL(arg)
		if err != nil {
			return err
		}
		if s == azaccount.Table {
			name = entityPath(name)
		}
		f.Redactor.know(azaccount.SecretsOf("", at.sas)...)
		if given, ok := f.urls[s]; ok && given != at {
			return WithHint(Usagef("the URLs name two accounts, or carry two signatures"), "the command works within one account")
		}
		if f.urls == nil {
			f.urls = map[azaccount.Service]accountURL{}
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
	if azaccount.PathStyle(u.Hostname()) {
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

// accountOf is the account whose service s is used: that of a URL if the resource was given as one.
func (f *Factory) accountOf(s azaccount.Service) (*azaccount.Account, error) {
	at, ok := f.urls[s]
	if ok && at.sas != "" {
		return azaccount.Signed(s, at.endpoint, at.sas), nil
	}
	a, err := f.account()
	if err != nil {
		return nil, err
	}
	if ok {
		if a, err = a.At(s, at.endpoint); err != nil {
			return nil, connectionError(err)
		}
	}
	if a.Endpoint(s) == "" {
		return nil, noAccount()
	}
	return a, nil
}
