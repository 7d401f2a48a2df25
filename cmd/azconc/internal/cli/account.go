package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
)

// addConnectionFlags adds the flags that name the account. Flags and environment variables have the names that the Azure CLI
// gives them.
func addConnectionFlags(p *pflag.FlagSet, c *azaccount.Flags) {
	p.StringVar(&c.ConnectionString, "connection-string", "", "connection `string` of the account; UseDevelopmentStorage=true is an emulator on this machine")
	p.StringVar(&c.AccountName, "account-name", "", "`name` of the account")
	p.StringVar(&c.AccountKey, "account-key", "", "`key` of the account")
	p.StringVar(&c.SASToken, "sas-token", "", "shared access signature `token`")
	p.StringVar(&c.ConnectionStringFile, "connection-string-file", "", "`file` with the connection string; - is stdin")
	p.StringVar(&c.AccountKeyFile, "account-key-file", "", "`file` with the key; - is stdin")
	p.StringVar(&c.SASTokenFile, "sas-token-file", "", "`file` with the token; - is stdin")
	p.StringVar(&c.AuthMode, "auth-mode", "", "{login | key}: Entra ID, or the given key or SAS")
	p.StringVar(&c.BlobEndpoint, "blob-endpoint", "", "`URL` of the Blob service, if not the default")
	p.StringVar(&c.TableEndpoint, "table-endpoint", "", "`URL` of the Table service")
	p.StringVar(&c.QueueEndpoint, "queue-endpoint", "", "`URL` of the Queue service")
	p.StringVar(&c.FileEndpoint, "file-endpoint", "", "`URL` of the File service")
}

// Account returns the account that flags and environment name. Its error is one of usage.
func (f *Factory) Account() (*azaccount.Account, error) { return f.account() }

// account returns the account that flags and environment name. It is resolved once, so that all clients share one credential.
func (f *Factory) account() (*azaccount.Account, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.resolved != nil {
		return f.resolved, nil
	}
	for _, file := range []string{f.flags.ConnectionStringFile, f.flags.AccountKeyFile, f.flags.SASTokenFile} {
		if file == "-" {
			stdin, err := f.stdin("a secret of the account")
			if err != nil {
				return nil, err
			}
			f.flags.Stdin = untilEnd(f.ctx, stdin)
		}
	}
	a, err := azaccount.Resolve(f.flags, f.Env.Get)
	if err != nil {
		return nil, connectionError(err)
	}
	f.Redactor.know(a.Secrets()...)
	f.resolved = a
	return a, nil
}

// connectionError turns an error of azaccount into a usage error with its hint.
func connectionError(err error) error {
	e, ok := errors.AsType[*azaccount.Error](err)
	switch {
	case !ok:
		return err
	case e.Hint != "":
		return fail.WithHint(&fail.UsageError{Err: err}, e.Hint)
	}
	return &fail.UsageError{Err: err}
}

func noAccount() error {
	return fail.WithHint(fail.Usagef("no account is given"),
		"give --account-name or --connection-string, or set AZURE_STORAGE_CONNECTION_STRING (UseDevelopmentStorage=true for an emulator on this machine)")
}

// localNames replaces the URLs among the arguments of a queue or table command by the names in them. The run then
// uses their account for that service. Blobs, containers, files and shares parse their URLs themselves, since one
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
		at, name, err := ref.SplitURL(arg)
		if err != nil {
			return err
		}
		if s == azaccount.Table {
			name = ref.EntityPath(name)
		}
		f.Redactor.know(azaccount.SecretsOf("", at.SAS)...)
		if given, ok := f.urls[s]; ok && given != at {
			return fail.WithHint(fail.Usagef("the URLs name two accounts, or carry two signatures"), "the command works within one account")
		}
		if f.urls == nil {
			f.urls = map[azaccount.Service]ref.Account{}
		}
		f.urls[s], args[i] = at, name
	}
	return nil
}

// accountOf returns the account to use for service s: the one in the resource's URL, if the resource is a URL.
func (f *Factory) accountOf(s azaccount.Service, url ref.Account) (*azaccount.Account, error) {
	if url.SAS != "" {
		f.Redactor.know(azaccount.SecretsOf("", url.SAS)...)
		return azaccount.Signed(s, url.Endpoint, url.SAS), nil
	}
	a, err := f.account()
	if err != nil {
		return nil, err
	}
	if url.Endpoint != "" {
		if a, err = a.At(s, url.Endpoint); err != nil {
			return nil, connectionError(err)
		}
	}
	if a.Endpoint(s) == "" {
		return nil, noAccount()
	}
	return a, nil
}
