package azclientgo_test

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/leaderelection"

	azclientgo "github.com/azconc/azconc/pkg/adapters/clientgo"
	"github.com/azconc/azconc/pkg/aztest"
)

// A process leads, and hands the lead over when its context ends.
func Example() {
	blob := aztest.New(nil).BlockBlob("election", "leader") // a *blockblob.Client
	lock, err := azclientgo.New(blob, "host-1_0b9e", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				fmt.Println(lock.Identity(), "leads", lock.Describe())
				cancel() // the work is done
			},
			OnStoppedLeading: func() {},
		},
	})
	record, _, err := lock.Get(context.Background())
	fmt.Printf("holder %q, %v\n", record.HolderIdentity, err)
	// Output:
	// host-1_0b9e leads election/leader
	// holder "", <nil>
}
