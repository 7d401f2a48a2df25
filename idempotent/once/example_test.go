package once_test

import (
	"context"
	"fmt"

	"github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

// A payment is made once however often it is asked for, and everybody gets the same answer.
func ExampleOnce_Do() {
	service := aztest.New(nil)
	locks := service.Container("locks")
	_, _ = locks.Create(context.Background(), nil)
	locker, err := pessimistic.NewLocker(locks, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	payments, err := once.New(locker, service.Table("results"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		out, err := payments.Do(context.Background(), "payment-4711", []byte("12 EUR to Ada"), func(context.Context, *pessimistic.Hold) ([]byte, error) {
			fmt.Println("paying")
			return []byte("paid"), nil
		})
		fmt.Println(string(out.Value), out.Replayed, err)
	}
	_, err = payments.Do(context.Background(), "payment-4711", []byte("120 EUR to Ada"), nil)
	fmt.Println(err)
	// Output:
	// paying
	// paid false <nil>
	// paid true <nil>
	// the key was used with another payload: payment-4711
}
