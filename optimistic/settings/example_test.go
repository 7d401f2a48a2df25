package settings_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/settings"
	"github.com/azconc/azconc/pkg/aztest"
)

// The response to the creation is lost. The id in the container's metadata shows that this call created it.
func ExampleCreateContainer() {
	ctx := context.Background()
	service := aztest.New(nil)
	client := service.Container("jobs")
	service.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Create Container"), Count: 1})

	r, err := settings.CreateContainer(ctx, client, nil)
	fmt.Println(r.Created, r.Resolved, err)
	_, err = settings.CreateContainer(ctx, client, nil)
	fmt.Println(errors.Is(err, optimistic.ErrExists))
	// Output:
	// true 1 <nil>
	// true
}
