package cli

import (
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

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azurite"
)

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

// Entity returns r's entity as a target that keeps every type.
func (f *Factory) Entity(r ref.Table) (tables.Entity[tables.Properties], error) {
	s, err := f.TableService()
	if err != nil {
		return tables.Entity[tables.Properties]{}, err
	}
	return tables.NewEntity[tables.Properties](s.NewClient(r.Table), r.Partition, r.Row), nil
}

// FileService returns the client of the account's File service.
func (f *Factory) FileService() (*azfiles.Client, error) {
	opts := &azfiles.ClientOptions{ClientOptions: f.ClientOptions()}
	a, err := f.account()
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
