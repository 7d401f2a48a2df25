package azcertmagic_test

import (
	"context"
	"fmt"

	azcertmagic "github.com/azconc/azconc/pkg/adapters/certmagic"
	"github.com/azconc/azconc/pkg/aztest"
)

func ExampleNew() {
	container := aztest.New(nil).Container("caddy") // a *container.Client
	_, _ = container.Create(context.Background(), nil)
	storage, err := azcertmagic.New(container, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	// certmagic.Default.Storage = storage
	err = storage.Store(context.Background(), "acme/example/users/ada.json", []byte("{}"))
	fmt.Println(err)
	fmt.Println(storage.List(context.Background(), "acme", true))
	// Output:
	// <nil>
	// [acme/example acme/example/users acme/example/users/ada.json] <nil>
}
