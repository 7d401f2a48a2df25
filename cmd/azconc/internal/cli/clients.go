package cli

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	azservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

// Container returns the client of r's container.
func (f *Factory) Container(r BlobRef) (*container.Client, error) {
	s, err := f.blobServiceClient(r)
	if err != nil {
		return nil, err
	}
	return s.NewContainerClient(r.Container), nil
}

// BlockBlob returns the client of a block blob.
func (f *Factory) BlockBlob(r BlobRef) (*blockblob.Client, error) {
	c, err := f.Container(r)
	if err != nil {
		return nil, err
	}
	return c.NewBlockBlobClient(r.Blob), nil
}

// Blob returns the client of a blob of any kind, at the snapshot or version that r names.
func (f *Factory) Blob(r BlobRef) (*blob.Client, error) {
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
func (f *Factory) BlobService() (*azservice.Client, error) { return f.blobServiceClient(BlobRef{}) }

func (f *Factory) blobServiceClient(r BlobRef) (*azservice.Client, error) {
	opts := &azservice.ClientOptions{ClientOptions: f.ClientOptions()}
	if r.sas != "" {
		f.Redactor.know(secretsOf("", r.sas)...)
		return azservice.NewClientWithNoCredential(r.endpoint+"/?"+r.sas, opts)
	}
	c, err := f.connection()
	if err != nil {
		return nil, err
	}
	endpoint := c.endpoint[blobService]
	if r.endpoint != "" {
		if err := c.sameAccount(blobService, r.endpoint); err != nil {
			return nil, err
		}
		endpoint = r.endpoint
	}
	if endpoint == "" {
		return nil, noAccount()
	}
	switch {
	case c.key != "":
		cred, err := azservice.NewSharedKeyCredential(c.account, c.key)
		if err != nil {
			return nil, Usagef("the account key is not usable")
		}
		return azservice.NewClientWithSharedKeyCredential(endpoint+"/", cred, opts)
	case c.sas != "":
		return azservice.NewClientWithNoCredential(endpoint+"/?"+c.sas, opts)
	default:
		cred, err := f.tokenCredential()
		if err != nil {
			return nil, err
		}
		return azservice.NewClient(endpoint+"/", cred, opts)
	}
}

func noAccount() error {
	return WithHint(Usagef("no account is given"),
		"give --account-name or --connection-string, or set AZURE_STORAGE_CONNECTION_STRING (UseDevelopmentStorage=true for Azurite)")
}

func (f *Factory) tokenCredential() (azcore.TokenCredential, error) {
	if f.credential == nil {
		cred, err := azidentity.NewDefaultAzureCredential(nil)
		if err != nil {
			return nil, err
		}
		f.credential = cred
	}
	return f.credential, nil
}
