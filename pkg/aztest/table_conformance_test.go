package aztest_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/conformance"
	"github.com/azconc/azconc/pkg/azurite"
)

func TestTablesInMemoryAnswerAsTheServiceDoes(t *testing.T) {
	s := aztest.New(nil)
	conformance.Table(conformance.Test(t), tableHarness(s.TableService(), false))
}

func TestTablesOfAzuriteAnswerAsExpected(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	server, err := azurite.Start(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	account := server.Account()
	credential, err := aztables.NewSharedKeyCredential(account.Name, account.Key)
	if err != nil {
		t.Fatal(err)
	}
	service, err := aztables.NewServiceClientWithSharedKey(account.TableURL, credential, nil)
	if err != nil {
		t.Fatal(err)
	}
	conformance.Table(conformance.Test(t), tableHarness(service, true))
}

func tableHarness(service *aztables.ServiceClient, emulator bool) conformance.Harness {
	var n atomic.Int32
	return conformance.Harness{Emulator: emulator, Tables: func(t conformance.T) (*aztables.ServiceClient, string) {
		name := fmt.Sprintf("conformance%d", n.Add(1))
		if _, err := service.CreateTable(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
		return service, name
	}}
}
