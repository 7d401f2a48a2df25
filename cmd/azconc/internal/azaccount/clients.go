package azaccount

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	blobs "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	files "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/pkg/ptr"
)

// BlobService returns a client of the Blob service. opts may be nil.
func (a *Account) BlobService(opts *blobs.ClientOptions) (*blobs.Client, error) {
	return client(a, Blob, "/", opts, blobs.NewSharedKeyCredential, blobs.NewClientWithSharedKeyCredential, blobs.NewClientWithNoCredential, blobs.NewClient)
}

// TableService returns a client of the Table service. opts may be nil.
func (a *Account) TableService(opts *aztables.ClientOptions) (*aztables.ServiceClient, error) {
	return client(a, Table, "", opts, aztables.NewSharedKeyCredential, aztables.NewServiceClientWithSharedKey, aztables.NewServiceClientWithNoCredential, aztables.NewServiceClient)
}

// QueueService returns a client of the Queue service. opts may be nil.
func (a *Account) QueueService(opts *azqueue.ClientOptions) (*azqueue.ServiceClient, error) {
	return client(a, Queue, "/", opts, azqueue.NewSharedKeyCredential, azqueue.NewServiceClientWithSharedKeyCredential, azqueue.NewServiceClientWithNoCredential, azqueue.NewServiceClient)
}

// FileService returns a client of the File service. opts may be nil. With Entra ID requests are sent with the intent
// "backup", without which the service refuses tokens (REST: "Authorize access to Azure file shares with Microsoft Entra
// ID").
func (a *Account) FileService(opts *files.ClientOptions) (*files.Client, error) {
	if a.login != nil {
		intended := ptr.Value(opts)
		intended.FileRequestIntent = new(files.ShareTokenIntentBackup)
		opts = &intended
	}
	return client(a, File, "/", opts, files.NewSharedKeyCredential, files.NewClientWithSharedKeyCredential, files.NewClientWithNoCredential, files.NewClient)
}

// client makes the client of a service by the SDK's function for the account's credential. slash ends the endpoint.
func client[C, K, O any](a *Account, s Service, slash string, opts *O,
	newKey func(name, key string) (*K, error),
	withKey func(endpoint string, key *K, opts *O) (*C, error),
	signed func(endpoint string, opts *O) (*C, error),
	withToken func(endpoint string, token azcore.TokenCredential, opts *O) (*C, error),
) (*C, error) {
	endpoint := a.endpoint[s]
	switch {
	case endpoint == "":
		return nil, hinted("set AZURE_STORAGE_ACCOUNT, or AZURE_STORAGE_CONNECTION_STRING with an endpoint of it", "no endpoint of the %s service is known", s)
	case a.key != "":
		key, err := newKey(a.name, a.key)
		if err != nil {
			return nil, invalid("the account key is not usable")
		}
		return withKey(endpoint+slash, key, opts)
	case a.sas != "":
		return signed(endpoint+"/?"+a.sas, opts)
	}
	token, err := a.login.get()
	if err != nil {
		return nil, err
	}
	return withToken(endpoint+slash, token, opts)
}
