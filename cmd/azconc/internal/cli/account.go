package cli

import (
	"errors"
	"path"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	azservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/directory"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	azfiles "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azurite"
)

// addConnectionFlags adds the flags that name the account. Flags and environment variables have the names that the Azure CLI
// gives them.
func addConnectionFlags(p *pflag.FlagSet, c *azaccount.Flags) {
	p.StringVar(&c.ConnectionString, "connection-string", "", "connection `string` of the account; UseDevelopmentStorage=true is an emulator on this machine")
	p.StringVar(&c.AccountName, "account-name", "", "`name` of the account")
	p.StringVar(&c.AccountKey, "account-key", "", "`key` of the account")
	p.StringVar(&c.SASToken, "sas-token", "", "shared access signature `token`")
	p.StringVar(&c.ConnectionStringFile, "connection-string-file", "", "`file` with the connection string")
	p.StringVar(&c.AccountKeyFile, "account-key-file", "", "`file` with the key")
	p.StringVar(&c.SASTokenFile, "sas-token-file", "", "`file` with the token")
	p.StringVar(&c.AuthMode, "auth-mode", "", "{login | key}: Entra ID, or the given key or SAS")
	p.StringVar(&c.BlobEndpoint, "blob-endpoint", "", "`URL` of the Blob service, if not the default")
	p.StringVar(&c.TableEndpoint, "table-endpoint", "", "`URL` of the Table service")
	p.StringVar(&c.QueueEndpoint, "queue-endpoint", "", "`URL` of the Queue service")
	p.StringVar(&c.FileEndpoint, "file-endpoint", "", "`URL` of the File service")
}

// Account returns the account that flags and environment name. It is resolved once, so that all clients share one credential. Its error
// is one of usage.
func (f *Factory) Account() (*azaccount.Account, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
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

// Use makes the account of a connection string that of the run.
func (f *Factory) Use(connection string) (*azaccount.Account, error) {
	a, err := azaccount.Resolve(azaccount.Flags{ConnectionString: connection}, func(string) string { return "" })
	f.resolved = a
	return a, connectionError(err)
}

// connectionError turns an error of azaccount into a usage error with its hint.
func connectionError(err error) error {
	e, ok := errors.AsType[*azaccount.Error](err)
	if !ok {
		return err
	}
	return fail.WithHint(&fail.UsageError{Err: err}, e.Hint)
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
		if arg = show.Unquoted(arg); !ref.IsURL(arg) {
			continue
		}
		_, at, name, err := ref.SplitURL(arg)
		if err != nil {
			return err
		}
		name = strings.TrimSuffix(name, "/")
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
	a, err := f.Account()
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

// Container returns the client of r's container.
func (f *Factory) Container(r ref.Blob) (*container.Client, error) {
	s, err := f.blobServiceClient(r)
	if err != nil {
		return nil, err
	}
	return s.NewContainerClient(r.Container), nil
}

// BlockBlob returns the client of a block blob.
func (f *Factory) BlockBlob(r ref.Blob) (*blockblob.Client, error) {
	c, err := f.Container(r)
	if err != nil {
		return nil, err
	}
	return c.NewBlockBlobClient(r.Blob), nil
}

// Blob returns the client of a blob of any kind, at the snapshot or version that r names.
func (f *Factory) Blob(r ref.Blob) (*blob.Client, error) {
	c, err := f.Container(r)
	if err != nil {
		return nil, err
	}
	b := c.NewBlobClient(r.Blob)
	switch {
	case r.Snapshot != "":
		return b.WithSnapshot(r.Snapshot)
	case r.Version != "":
		return b.WithVersionID(r.Version)
	}
	return b, nil
}

// BlobService returns the client of the account's Blob service.
func (f *Factory) BlobService() (*azservice.Client, error) { return f.blobServiceClient(ref.Blob{}) }

func (f *Factory) blobServiceClient(r ref.Blob) (*azservice.Client, error) {
	opts := &azservice.ClientOptions{ClientOptions: f.ClientOptions()}
	a, err := f.accountOf(azaccount.Blob, ref.Account{Endpoint: r.Endpoint, SAS: r.SAS})
	if err != nil {
		return nil, err
	}
	c, err := a.BlobService(opts)
	return c, connectionError(err)
}

// QueueService returns the client of the account's Queue service.
func (f *Factory) QueueService() (*azqueue.ServiceClient, error) {
	opts := &azqueue.ClientOptions{ClientOptions: f.ClientOptions()}
	opts.PerRetryPolicies = append(opts.PerRetryPolicies, idempotent.Policy())
	a, err := f.accountOf(azaccount.Queue, f.urls[azaccount.Queue])
	if err != nil {
		return nil, err
	}
	c, err := a.QueueService(opts)
	return c, connectionError(err)
}

// Queue returns the client of a queue.
func (f *Factory) Queue(name string) (*azqueue.QueueClient, error) {
	s, err := f.QueueService()
	if err != nil {
		return nil, err
	}
	return s.NewQueueClient(name), nil
}

// TableService returns the client of the account's Table service.
func (f *Factory) TableService() (*aztables.ServiceClient, error) {
	opts := &aztables.ClientOptions{ClientOptions: f.ClientOptions()}
	a, err := f.accountOf(azaccount.Table, f.urls[azaccount.Table])
	if err != nil {
		return nil, err
	}
	c, err := a.TableService(opts)
	return c, connectionError(err)
}

// Table returns the client of r's table.
func (f *Factory) Table(r ref.Table) (*aztables.Client, error) {
	s, err := f.TableService()
	if err != nil {
		return nil, err
	}
	return s.NewClient(r.Table), nil
}

// Entity returns r's entity as a target that keeps every type.
func (f *Factory) Entity(r ref.Table) (tables.Entity[tables.Properties], error) {
	c, err := f.Table(r)
	return tables.NewEntity[tables.Properties](c, r.Partition, r.Row), err
}

// FileService returns the client of the account's File service.
func (f *Factory) FileService() (*azfiles.Client, error) {
	opts := &azfiles.ClientOptions{ClientOptions: f.ClientOptions()}
	a, err := f.Account()
	if err != nil {
		return nil, err
	}
	endpoint := a.Endpoint(azaccount.File)
	switch {
	case strings.Contains(endpoint, "://"+azurite.DefaultAccount+".file."), endpoint == "" && a.Endpoint(azaccount.Blob) != "":
		return nil, fail.WithHint(fail.Usagef("the connection has no File service"), "Azurite has none, and azconc dev up does; or give the connection of an account, or --file-endpoint")
	case endpoint == "":
		return nil, noAccount()
	}
	c, err := a.FileService(opts)
	return c, connectionError(err)
}

// Share returns the client of r's share.
func (f *Factory) Share(r ref.File) (*share.Client, error) {
	s, err := f.FileService()
	if err != nil {
		return nil, err
	}
	return s.NewShareClient(r.Share), nil
}

// File returns the client of a file. It is the directory's, because the SDK would escape the slashes in a path.
func (f *Factory) File(r ref.File) (*file.Client, error) {
	dir, name := path.Split(r.Path)
	d, err := f.Directory(ref.File{Share: r.Share, Path: strings.TrimSuffix(dir, "/")})
	if err != nil {
		return nil, err
	}
	return d.NewFileClient(name), nil
}

// Directory returns the client of a directory: the share's root if r has no path.
func (f *Factory) Directory(r ref.File) (*directory.Client, error) {
	s, err := f.Share(r)
	if err != nil {
		return nil, err
	}
	d := s.NewRootDirectoryClient()
	for _, name := range strings.FieldsFunc(r.Path, func(c rune) bool { return c == '/' }) {
		d = d.NewSubdirectoryClient(name)
	}
	return d, nil
}
