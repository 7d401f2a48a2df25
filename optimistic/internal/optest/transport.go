package optest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/pkg/aztest"
)

// OverHTTP returns a client that reaches s through a socket.
func OverHTTP(t *testing.T, s *aztest.Service, container, name string) *blockblob.Client {
	t.Helper()
	s.BlockBlob(container, name) // makes the container
	server := httptest.NewServer(s.BlobHandler())
	t.Cleanup(server.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	t.Cleanup(transport.CloseIdleConnections)
	credential, err := blob.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := blockblob.NewClientWithSharedKeyCredential(server.URL+"/"+aztest.Account+"/"+container+"/"+name, credential,
		&blockblob.ClientOptions{ClientOptions: policy.ClientOptions{Transport: &http.Client{Transport: transport}}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// LeaseFor leases the blob for 60 s and returns the id of the lease.
func LeaseFor(t *testing.T, client *blockblob.Client) string {
	t.Helper()
	holder, err := lease.NewBlobClient(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := holder.AcquireLease(t.Context(), 60, nil)
	if err != nil {
		t.Fatal(err)
	}
	return *resp.LeaseID
}
