package aztest_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/conformance"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

func TestTablesOfAzuriteAnswerAsExpected(t *testing.T) {
	h := azuriteTables(t)
	for _, section := range conformance.Sections() {
		if section.Service == "table" {
			t.Run(section.Name, func(t *testing.T) { section.Run(conformance.Test(t), h) })
		}
	}
}

func azuriteTables(t *testing.T) conformance.Harness {
	account := azuritetest.Account(t)
	return tableHarness(t, account.TableURL, account.Name, account.Key, nil)
}

func memoryTables(t *testing.T) conformance.Harness {
	s := aztest.New(nil)
	return tableHarness(t, s.TableURL(), aztest.Account, aztest.Key, s)
}

// tableHarness makes the tables of an account: Azurite's, or without a transport that in memory.
func tableHarness(t *testing.T, url, name, key string, memory *aztest.Service) conformance.Harness {
	t.Helper()
	options := aztables.ClientOptions{ClientOptions: policy.ClientOptions{PerCallPolicies: []policy.Policy{conformance.Requests()}}}
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
	return conformance.Harness{Emulator: memory == nil, Tables: func(t conformance.T) (*aztables.ServiceClient, string) {
		name := "conformance" + strings.ToLower(rand.Text())
		if _, err := service.CreateTable(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
		return service, name
	}}
}
