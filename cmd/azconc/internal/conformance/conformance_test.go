package conformance

import (
	"bytes"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

func TestTheInMemoryServiceAnswersAsTheServiceDoes(t *testing.T) { all(t, memoryHarness(t)) }

// TestEveryRuleIsAsked: a rule is a line, and no line is passed over.
func TestEveryRuleIsAsked(t *testing.T) {
	for _, section := range sections() {
		text, err := os.ReadFile("rules/" + section.name + ".txt")
		if err != nil || section.slow || bytes.Contains(text, []byte("\noperation: ")) {
			continue
		}
		n := 0
		h := memoryHarness(t)
		h.Note = func(*testing.T, answered) { n++ }
		section.ask(t, h)
		if rules := bytes.Count(text, []byte(" => ")); n != rules || n == 0 {
			t.Errorf("%s has %d rules, and %d were asked", section.name, rules, n)
		}
	}
}

func TestAzuriteAnswersAsExpected(t *testing.T) { all(t, azuriteHarness(t)) }

func TestLeasesInMemoryExpireAsTheServicesDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { slow(t, memoryHarness(t)) })
}

// It is parallel because it has 15 seconds to wait.
func TestLeasesOfAzuriteExpireAsExpected(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: other tests ask Azurite, and this is a short run")
	}
	slow(t, azuriteHarness(t))
}

// slow asks what waits for time to pass.
func slow(t *testing.T, h harness) {
	for _, section := range sections() {
		if section.slow {
			section.ask(t, h)
		}
	}
}

func memoryHarness(t *testing.T) harness {
	s := aztest.New(nil)
	var n atomic.Int32
	return harness{
		Tables: memoryTables(t).Tables,
		Container: func(t *testing.T) *container.Client {
			return created(t, containerClient(t, s.BlobURL(), aztest.Account, aztest.Key, n.Add(1), s))
		},
		Queue: func(t *testing.T) *azqueue.QueueClient {
			return queueOf(t, s.QueueURL(), aztest.Account, aztest.Key, n.Add(1), s)
		},
		Share: func(t *testing.T) *share.Client {
			o := s.ClientOptions()
			o.PerCallPolicies = []policy.Policy{requestsOfRules{}}
			key, err := share.NewSharedKeyCredential(aztest.Account, aztest.Key)
			if err != nil {
				t.Fatal(err)
			}
			c, err := share.NewClientWithSharedKeyCredential(s.Share(fmt.Sprintf("conformance-%d", n.Add(1))).URL(), key, &share.ClientOptions{ClientOptions: o})
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
	}
}

func azuriteHarness(t *testing.T) harness {
	account := azuritetest.Account(t)
	var n atomic.Int32
	return harness{
		Emulator: true,
		Container: func(t *testing.T) *container.Client {
			return created(t, containerClient(t, account.BlobURL, account.Name, account.Key, n.Add(1), nil))
		},
		Queue: func(t *testing.T) *azqueue.QueueClient {
			return queueOf(t, account.QueueURL, account.Name, account.Key, n.Add(1), nil)
		},
	}
}

func containerClient(t *testing.T, blobURL, name, key string, n int32, transport policy.Transporter) *container.Client {
	t.Helper()
	credential, err := container.NewSharedKeyCredential(name, key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(fmt.Sprintf("%s/conformance-%d", blobURL, n), credential, &container.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: transport, PerCallPolicies: []policy.Policy{requestsOfRules{}}},
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

// all asks everything that takes no time of the services that h has.
func all(t *testing.T, h harness) {
	there := map[string]bool{"blob": h.Container != nil, "table": h.Tables != nil, "queue": h.Queue != nil, "file": h.Share != nil}
	for _, section := range sections() {
		if there[section.service] && !section.slow {
			t.Run(section.name, func(t *testing.T) { section.ask(t, h) })
		}
	}
}

func queueOf(t *testing.T, queueURL, name, key string, n int32, transport policy.Transporter) *azqueue.QueueClient {
	t.Helper()
	credential, err := azqueue.NewSharedKeyCredential(name, key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azqueue.NewQueueClientWithSharedKeyCredential(fmt.Sprintf("%s/conformance-%d", queueURL, n), credential, &azqueue.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: transport, PerCallPolicies: []policy.Policy{requestsOfRules{}}},
	})
	if err == nil {
		_, err = client.Create(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return client
}
