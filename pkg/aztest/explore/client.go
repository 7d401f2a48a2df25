package explore

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/pkg/aztest"
)

// Client is one client of a program. It is a policy.Transporter whose requests wait for the explorer.
type Client struct {
	World  *World
	Number int // from 0, as in Program.Clients

	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}

	// Guarded by World.mu.
	sent   map[string]int // requests by label, to number them
	ids    int            // ids drawn, to name them
	err    error
	ended  bool
	killed bool
}

// ClientOptions are for any client of the SDK whose requests shall be explored.
func (c *Client) ClientOptions() azcore.ClientOptions { return policy.ClientOptions{Transport: c} }

// Container returns this client's view of a container, which need not exist.
func (c *Client) Container(name string) *container.Client {
	credential, err := container.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		panic(err) // the account's own key is wrong
	}
	client, err := container.NewClientWithSharedKeyCredential(c.World.Service.BlobURL()+"/"+name, credential, &container.ClientOptions{ClientOptions: c.ClientOptions()})
	if err != nil {
		panic(err)
	}
	return client
}

// BlockBlob returns this client's view of a blob, and creates the container if it is missing, without a request.
func (c *Client) BlockBlob(containerName, blobName string) *blockblob.Client {
	c.World.Service.BlockBlob(containerName, blobName)
	return c.Container(containerName).NewBlockBlobClient(blobName)
}

// Table returns this client's view of a table, which need not exist.
func (c *Client) Table(name string) *aztables.Client {
	credential, err := aztables.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		panic(err)
	}
	service, err := aztables.NewServiceClientWithSharedKey(c.World.Service.TableURL(), credential, &aztables.ClientOptions{ClientOptions: c.ClientOptions()})
	if err != nil {
		panic(err)
	}
	return service.NewClient(name)
}

// Queue returns this client's view of a queue, which need not exist.
func (c *Client) Queue(name string) *azqueue.QueueClient {
	credential, err := azqueue.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		panic(err)
	}
	client, err := azqueue.NewQueueClientWithSharedKeyCredential(c.World.Service.QueueURL()+"/"+name, credential, &azqueue.ClientOptions{ClientOptions: c.ClientOptions()})
	if err != nil {
		panic(err)
	}
	return client
}

// File returns this client's view of a file in the root of a share, which need not exist.
func (c *Client) File(shareName, name string) *file.Client {
	credential, err := share.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		panic(err)
	}
	client, err := share.NewClientWithSharedKeyCredential(c.World.Service.FileURL()+"/"+shareName, credential, &share.ClientOptions{ClientOptions: c.ClientOptions()})
	if err != nil {
		panic(err)
	}
	return client.NewRootDirectoryClient().NewFileClient(name)
}
