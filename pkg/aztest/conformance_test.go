package aztest_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/internal/conformance"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

func TestTheInMemoryServiceAnswersAsTheServiceDoes(t *testing.T) { all(t, memoryHarness()) }

func TestAzuriteAnswersAsExpected(t *testing.T) { all(t, azuriteHarness(t)) }

func TestLeasesInMemoryExpireAsTheServicesDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { conformance.Expiry(t, memoryHarness()) })
}

// It is parallel because it has 15 seconds to wait.
func TestLeasesOfAzuriteExpireAsExpected(t *testing.T) {
	t.Parallel()
	conformance.Expiry(t, azuriteHarness(t))
}

func memoryHarness() conformance.Harness {
	s := aztest.New(nil)
	var n atomic.Int32
	return conformance.Harness{Container: func(t *testing.T) *container.Client {
		return created(t, containerClient(t, s.BlobURL(), aztest.Account, aztest.Key, n.Add(1), s))
	}}
}

func azuriteHarness(t *testing.T) conformance.Harness {
	account := azuritetest.Account(t)
	var n atomic.Int32
	return conformance.Harness{Emulator: true, Container: func(t *testing.T) *container.Client {
		return created(t, containerClient(t, account.BlobURL, account.Name, account.Key, n.Add(1), nil))
	}}
}

func containerClient(t *testing.T, blobURL, name, key string, n int32, transport policy.Transporter) *container.Client {
	t.Helper()
	credential, err := container.NewSharedKeyCredential(name, key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(fmt.Sprintf("%s/conformance-%d", blobURL, n), credential, &container.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: transport, PerCallPolicies: []policy.Policy{conformance.Headers()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
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
	t.Run("pairs", func(t *testing.T) { conformance.Pairs(t, h) })
	t.Run("sources", func(t *testing.T) { conformance.Sources(t, h) })
	t.Run("positions", func(t *testing.T) { conformance.Positions(t, h) })
	t.Run("snapshots", func(t *testing.T) { conformance.Snapshots(t, h) })
	t.Run("uncommitted", func(t *testing.T) { conformance.Uncommitted(t, h) })
	t.Run("content", func(t *testing.T) { conformance.Content(t, h) })
	t.Run("tags", func(t *testing.T) { conformance.Tags(t, h) })
}
