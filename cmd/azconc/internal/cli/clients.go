package cli

import (
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	azservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/azconc/azconc/pkg/azaccount"
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
		f.Redactor.know(azaccount.SecretsOf("", r.sas)...)
		return azaccount.Signed(azaccount.Blob, r.endpoint, r.sas).BlobService(opts)
	}
	a, err := f.account()
	if err != nil {
		return nil, err
	}
	if r.endpoint != "" {
		if a, err = a.At(azaccount.Blob, r.endpoint); err != nil {
			return nil, connectionError(err)
		}
	}
	if a.Endpoint(azaccount.Blob) == "" {
		return nil, noAccount()
	}
	c, err := a.BlobService(opts)
	return c, connectionError(err)
}
