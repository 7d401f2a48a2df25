package conformance

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

func TestTablesOfAzuriteAnswerAsExpected(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: other tests ask Azurite, and this is a short run")
	}
	h := azuriteTables(t)
	for _, section := range sections() {
		if section.service == "table" {
			t.Run(section.name, func(t *testing.T) { section.ask(t, h) })
		}
	}
}

func azuriteTables(t *testing.T) harness {
	account := azuritetest.Account(t)
	return tableHarness(t, account.TableURL, account.Name, account.Key, nil)
}

func memoryTables(t *testing.T) harness {
	s := aztest.New(nil)
	return tableHarness(t, s.TableURL(), aztest.Account, aztest.Key, s)
}

// tableHarness makes the tables of an account: Azurite's, or without a transport that in memory.
func tableHarness(t *testing.T, url, name, key string, memory *aztest.Service) harness {
	t.Helper()
	options := aztables.ClientOptions{ClientOptions: policy.ClientOptions{PerCallPolicies: []policy.Policy{requestsOfRules{}}}}
	if memory != nil {
		options.Transport = memory
	}
	credential, err := aztables.NewSharedKeyCredential(name, key)
	if err != nil {
		t.Fatal(err)
	}
	service, err := aztables.NewServiceClientWithSharedKey(url, credential, &options)
	if err != nil {
		t.Fatal(err)
	}
	return harness{Emulator: memory == nil, Tables: func(t *testing.T) (*aztables.ServiceClient, string) {
		name := "conformance" + strings.ToLower(rand.Text())
		if _, err := service.CreateTable(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
		return service, name
	}}
}
