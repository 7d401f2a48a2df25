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

// asked counts the answers of a section.
type asked struct {
	T
	n *int
}

func (a asked) Answered(Answer) { *a.n++ }
func (a asked) Run(name string, f func(t T)) {
	a.T.Run(name, func(t T) { f(asked{t, a.n}) })
}

// TestEveryRuleIsAsked: a rule is a line, and no line is passed over.
func TestEveryRuleIsAsked(t *testing.T) {
	for _, section := range Sections() {
		text, err := os.ReadFile("rules/" + section.Name + ".txt")
		if err != nil || section.Slow || bytes.Contains(text, []byte("\noperation: ")) {
			continue
		}
		n := 0
		section.Run(asked{Test(t), &n}, memoryHarness(t))
		if rules := bytes.Count(text, []byte(" => ")); n != rules || n == 0 {
			t.Errorf("%s has %d rules, and %d were asked", section.Name, rules, n)
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
	slow(t, azuriteHarness(t))
}

// slow asks what waits for time to pass.
func slow(t *testing.T, h Harness) {
	for _, section := range Sections() {
		if section.Slow {
			section.Run(Test(t), h)
		}
	}
}

func memoryHarness(t *testing.T) Harness {
	s := aztest.New(nil)
	var n atomic.Int32
	return Harness{
		Tables: memoryTables(t).Tables,
		Container: func(t T) *container.Client {
			return created(t, containerClient(t, s.BlobURL(), aztest.Account, aztest.Key, n.Add(1), s))
		},
		Queue: func(t T) *azqueue.QueueClient {
			return queueOf(t, s.QueueURL(), aztest.Account, aztest.Key, n.Add(1), s)
		},
		Share: func(t T) *share.Client {
			o := s.ClientOptions()
			o.PerCallPolicies = []policy.Policy{Requests()}
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

func azuriteHarness(t *testing.T) Harness {
	account := azuritetest.Account(t)
	var n atomic.Int32
	return Harness{
		Emulator: true,
		Container: func(t T) *container.Client {
			return created(t, containerClient(t, account.BlobURL, account.Name, account.Key, n.Add(1), nil))
		},
		Queue: func(t T) *azqueue.QueueClient {
			return queueOf(t, account.QueueURL, account.Name, account.Key, n.Add(1), nil)
		},
	}
}

func containerClient(t T, blobURL, name, key string, n int32, transport policy.Transporter) *container.Client {
	t.Helper()
	credential, err := container.NewSharedKeyCredential(name, key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(fmt.Sprintf("%s/conformance-%d", blobURL, n), credential, &container.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: transport, PerCallPolicies: []policy.Policy{Requests()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func created(t T, client *container.Client) *container.Client {
	t.Helper()
	if _, err := client.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return client
}

// all asks everything that takes no time of the services that h has.
func all(t *testing.T, h Harness) {
	there := map[string]bool{"blob": h.Container != nil, "table": h.Tables != nil, "queue": h.Queue != nil, "file": h.Share != nil}
	for _, section := range Sections() {
		if there[section.Service] && !section.Slow {
			t.Run(section.Name, func(t *testing.T) { section.Run(Test(t), h) })
		}
	}
}

func queueOf(t T, queueURL, name, key string, n int32, transport policy.Transporter) *azqueue.QueueClient {
	t.Helper()
	credential, err := azqueue.NewSharedKeyCredential(name, key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azqueue.NewQueueClientWithSharedKeyCredential(fmt.Sprintf("%s/conformance-%d", queueURL, n), credential, &azqueue.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: transport, PerCallPolicies: []policy.Policy{Requests()}},
	})
	if err == nil {
		_, err = client.Create(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return client
}
