package scene

import (
	"crypto/rand"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	azservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	fileservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

// Rig is where scenes are played, and how.
type Rig struct {
	// The clients of the account's services. Files is nil if it has none; their scene is skipped then.
	Blobs  func(*azservice.ClientOptions) (*azservice.Client, error)
	Queues func(*azqueue.ClientOptions) (*azqueue.ServiceClient, error)
	Tables func(*aztables.ClientOptions) (*aztables.ServiceClient, error)
	Files  func(*fileservice.ClientOptions) (*fileservice.Client, error)
	// Options returns the options of each client.
	Options func() azcore.ClientOptions
	// Suffix makes the names of containers, tables, queues and shares differ from those of other runs: lower-case letters and digits.
	Suffix string
	// Increments is how often the counter of lost-answers is incremented, and LoseOneIn how many writes it takes to lose a response.
	Increments, LoseOneIn int
}

// The defaults of a Rig.
const (
	Increments = 60
	LoseOneIn  = 5
)

// New returns a rig without clients.
func New(options func() azcore.ClientOptions) Rig {
	return Rig{Options: options, Suffix: strings.ToLower(rand.Text()[:8]), Increments: Increments, LoseOneIn: LoseOneIn}
}

// OnConnection returns a rig on the account of a connection string, which names the endpoints of its services.
func OnConnection(connection string, options func() azcore.ClientOptions) Rig {
	r := New(options)
	r.Blobs = func(o *azservice.ClientOptions) (*azservice.Client, error) {
		return azservice.NewClientFromConnectionString(connection, o)
	}
	r.Queues = func(o *azqueue.ClientOptions) (*azqueue.ServiceClient, error) {
		return azqueue.NewServiceClientFromConnectionString(connection, o)
	}
	r.Tables = func(o *aztables.ClientOptions) (*aztables.ServiceClient, error) {
		return aztables.NewServiceClientFromConnectionString(connection, o)
	}
	if strings.Contains(connection, "FileEndpoint=") { // Azurite has none
		r.Files = func(o *fileservice.ClientOptions) (*fileservice.Client, error) {
			return fileservice.NewClientFromConnectionString(connection, o)
		}
	}
	return r
}
