package azaccount

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	blobs "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	files "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

// BlobService returns a client of the Blob service. opts may be nil.
func (a *Account) BlobService(opts *blobs.ClientOptions) (*blobs.Client, error) {
	endpoint, err := a.known(Blob)
	if err != nil {
		return nil, err
	}
	switch {
	case a.key != "":
		credential, err := blobs.NewSharedKeyCredential(a.name, a.key)
		if err != nil {
			return nil, unusableKey()
		}
		return blobs.NewClientWithSharedKeyCredential(endpoint+"/", credential, opts)
	case a.sas != "":
		return blobs.NewClientWithNoCredential(endpoint+"/?"+a.sas, opts)
	}
	credential, err := a.login.get()
	if err != nil {
		return nil, err
	}
	return blobs.NewClient(endpoint+"/", credential, opts)
}

// TableService returns a client of the Table service. opts may be nil.
func (a *Account) TableService(opts *aztables.ClientOptions) (*aztables.ServiceClient, error) {
	endpoint, err := a.known(Table)
	if err != nil {
		return nil, err
	}
	switch {
	case a.key != "":
		credential, err := aztables.NewSharedKeyCredential(a.name, a.key)
		if err != nil {
			return nil, unusableKey()
		}
		return aztables.NewServiceClientWithSharedKey(endpoint, credential, opts)
	case a.sas != "":
		return aztables.NewServiceClientWithNoCredential(endpoint+"/?"+a.sas, opts)
	}
	credential, err := a.login.get()
	if err != nil {
		return nil, err
	}
	return aztables.NewServiceClient(endpoint, credential, opts)
}

// QueueService returns a client of the Queue service. opts may be nil.
func (a *Account) QueueService(opts *azqueue.ClientOptions) (*azqueue.ServiceClient, error) {
	endpoint, err := a.known(Queue)
	if err != nil {
		return nil, err
	}
	switch {
	case a.key != "":
		credential, err := azqueue.NewSharedKeyCredential(a.name, a.key)
		if err != nil {
			return nil, unusableKey()
		}
		return azqueue.NewServiceClientWithSharedKeyCredential(endpoint+"/", credential, opts)
	case a.sas != "":
		return azqueue.NewServiceClientWithNoCredential(endpoint+"/?"+a.sas, opts)
	}
	credential, err := a.login.get()
	if err != nil {
		return nil, err
	}
	return azqueue.NewServiceClient(endpoint+"/", credential, opts)
}

// FileService returns a client of the File service. opts may be nil. With Entra ID requests are sent with the intent
// "backup", without which the service refuses tokens (REST: "Authorize access to Azure file shares with Microsoft Entra
// ID").
func (a *Account) FileService(opts *files.ClientOptions) (*files.Client, error) {
	endpoint, err := a.known(File)
	if err != nil {
		return nil, err
	}
	switch {
	case a.key != "":
		credential, err := files.NewSharedKeyCredential(a.name, a.key)
		if err != nil {
			return nil, unusableKey()
		}
		return files.NewClientWithSharedKeyCredential(endpoint+"/", credential, opts)
	case a.sas != "":
		return files.NewClientWithNoCredential(endpoint+"/?"+a.sas, opts)
	}
	credential, err := a.login.get()
	if err != nil {
		return nil, err
	}
	intended := files.ClientOptions{}
	if opts != nil {
		intended = *opts
	}
	intended.FileRequestIntent = to.Ptr(files.ShareTokenIntentBackup)
	return files.NewClient(endpoint+"/", credential, &intended)
}

func (a *Account) known(s Service) (string, error) {
	if endpoint := a.endpoint[s]; endpoint != "" {
		return endpoint, nil
	}
	return "", hinted("set AZURE_STORAGE_ACCOUNT, or AZURE_STORAGE_CONNECTION_STRING with an endpoint of it", "no endpoint of the %s service is known", s)
}

func unusableKey() error { return invalid("the account key is not usable") }
