package optest

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"

	"github.com/azconc/azconc/pkg/aztest"
)

func PagesOf(s *aztest.Service) *pageblob.Client {
	return s.Container("box").NewPageBlobClient("pages")
}

// MakePages makes an empty page blob.
func MakePages(t *testing.T, s *aztest.Service, size int64) *pageblob.Client {
	t.Helper()
	s.BlockBlob("box", "any") // makes the container
	client := PagesOf(s)
	if _, err := client.Create(t.Context(), size, nil); err != nil {
		t.Fatal(err)
	}
	s.Reset()
	return client
}
