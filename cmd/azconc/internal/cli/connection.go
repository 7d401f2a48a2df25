package cli

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/pkg/azaccount"
)

// addConnectionFlags adds the flags that name the account. They have the names and the environment variables of the Azure
// CLI.
func addConnectionFlags(p *pflag.FlagSet, c *azaccount.Flags) {
	p.StringVar(&c.ConnectionString, "connection-string", "", "connection `string` of the account; UseDevelopmentStorage=true is Azurite")
	p.StringVar(&c.AccountName, "account-name", "", "`name` of the account")
	p.StringVar(&c.AccountKey, "account-key", "", "`key` of the account")
	p.StringVar(&c.SASToken, "sas-token", "", "shared access signature `token`")
	p.StringVar(&c.AuthMode, "auth-mode", "", "{login | key}: Entra ID, or the given key or SAS")
	p.StringVar(&c.BlobEndpoint, "blob-endpoint", "", "`URL` of the Blob service, if not the default")
	p.StringVar(&c.TableEndpoint, "table-endpoint", "", "`URL` of the Table service")
	p.StringVar(&c.QueueEndpoint, "queue-endpoint", "", "`URL` of the Queue service")
	p.StringVar(&c.FileEndpoint, "file-endpoint", "", "`URL` of the File service")
}

// account is what flags and environment name. It is looked up once, so that all clients share one token credential.
func (f *Factory) account() (*azaccount.Account, error) {
	if f.resolved != nil {
		return f.resolved, nil
	}
	a, err := azaccount.Resolve(f.flags, f.Env.Get)
	if err != nil {
		return nil, connectionError(err)
	}
	f.Redactor.know(a.Secrets()...)
	f.resolved = a
	return a, nil
}

// connectionError makes a usage error, with its hint, of what azaccount refuses.
func connectionError(err error) error {
	e, ok := errors.AsType[*azaccount.Error](err)
	switch {
	case !ok:
		return err
	case e.Hint != "":
		return WithHint(&UsageError{Err: err}, e.Hint)
	}
	return &UsageError{Err: err}
}

func noAccount() error {
	return WithHint(Usagef("no account is given"),
		"give --account-name or --connection-string, or set AZURE_STORAGE_CONNECTION_STRING (UseDevelopmentStorage=true for Azurite)")
}
