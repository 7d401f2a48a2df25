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
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

// Client is one client of a program. It is a policy.Transporter whose requests wait for the explorer.
type Client struct {
	World  *World
	Number int // from 0, as in Program.Clients

	cancel context.CancelFunc

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
	return must(container.NewClientWithNoCredential(c.World.Service.BlobURL()+"/"+name, &container.ClientOptions{ClientOptions: c.ClientOptions()}))
}

// BlockBlob returns this client's view of a blob, and creates the container if it is missing, without a request.
func (c *Client) BlockBlob(containerName, blobName string) *blockblob.Client {
	c.World.Service.BlockBlob(containerName, blobName)
	return c.Container(containerName).NewBlockBlobClient(blobName)
}

// Table returns this client's view of a table, which need not exist.
func (c *Client) Table(name string) *aztables.Client {
	return must(aztables.NewServiceClientWithNoCredential(c.World.Service.TableURL(), &aztables.ClientOptions{ClientOptions: c.ClientOptions()})).NewClient(name)
}

// Queue returns this client's view of a queue, which need not exist.
func (c *Client) Queue(name string) *azqueue.QueueClient {
	return must(azqueue.NewQueueClientWithNoCredential(c.World.Service.QueueURL()+"/"+name, &azqueue.ClientOptions{ClientOptions: c.ClientOptions()}))
}

// File returns this client's view of a file in the root of a share, which need not exist.
func (c *Client) File(shareName, name string) *file.Client {
	client := must(share.NewClientWithNoCredential(c.World.Service.FileURL()+"/"+shareName, &share.ClientOptions{ClientOptions: c.ClientOptions()}))
	return client.NewRootDirectoryClient().NewFileClient(name)
}

// must returns a client of the SDK. The in-memory service's own URLs make no error.
func must[T any](client T, err error) T {
	if err != nil {
		panic(err)
	}
	return client
}
