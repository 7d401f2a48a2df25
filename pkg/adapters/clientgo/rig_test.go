package azclientgo

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/pkg/aztest"
)

// behind returns the Lock of a candidate that reaches the service through a transport of its own.
func behind(t *testing.T, s *aztest.Service, transport policy.Transporter, identity string) *Lock {
	t.Helper()
	key, err := blob.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	o := s.ClientOptions()
	o.Transport = transport
	client, err := blockblob.NewClientWithSharedKeyCredential(s.BlockBlob("election", "leader").URL(), key, &blockblob.ClientOptions{ClientOptions: o})
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(client, identity, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
