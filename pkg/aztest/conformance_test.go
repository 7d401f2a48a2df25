package aztest_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/conformance"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

func TestTheInMemoryServiceAnswersAsTheServiceDoes(t *testing.T) { all(t, memoryHarness()) }

func TestAzuriteAnswersAsExpected(t *testing.T) { all(t, azuriteHarness(t)) }

func memoryHarness() conformance.Harness {
	s := aztest.New(nil)
	var n atomic.Int32
	return conformance.Harness{Container: func(t *testing.T) *container.Client {
		return created(t, s.Container(fmt.Sprintf("conformance-%d", n.Add(1))))
	}}
}

func azuriteHarness(t *testing.T) conformance.Harness {
	account := azuritetest.Account(t)
	credential, err := container.NewSharedKeyCredential(account.Name, account.Key)
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int32
	return conformance.Harness{Emulator: true, Container: func(t *testing.T) *container.Client {
		client, err := container.NewClientWithSharedKeyCredential(fmt.Sprintf("%s/conformance-%d", account.BlobURL, n.Add(1)), credential, nil)
		if err != nil {
			t.Fatal(err)
		}
		return created(t, client)
	}}
}

func created(t *testing.T, client *container.Client) *container.Client {
	t.Helper()
	if _, err := client.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return client
}

func all(t *testing.T, h conformance.Harness) {
	t.Run("blob", func(t *testing.T) { conformance.Blob(t, h) })
	t.Run("container", func(t *testing.T) { conformance.Container(t, h) })
	t.Run("lease", func(t *testing.T) { conformance.Lease(t, h) })
	t.Run("versions", func(t *testing.T) { conformance.Versions(t, h) })
}
