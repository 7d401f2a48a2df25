package explore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	idem "github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest/explore"
)

// onces is a program of clients that run one function once.
func onces(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		w.Service.BlockBlob("locks", "x") // makes the container
		w.Service.Table("results")
		ran := 0
		var p explore.Program
		for i := range clients {
			p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error {
				k, err := pessimistic.NewLocker(c.Container("locks"), &pessimistic.LockerOptions{Owner: fmt.Sprint(i), Duration: 18 * time.Second, Poll: steady(10 * time.Second)})
				if err != nil {
					return err
				}
				once, err := idem.New(k, c.Table("results"), nil)
				if err != nil {
					return err
				}
				out, err := once.Do(ctx, "invoice-17", nil, func(context.Context, *pessimistic.Hold) ([]byte, error) {
					ran++
					return []byte("charged"), nil
				})
				if err == nil && string(out.Value) != "charged" {
					return fmt.Errorf("the result is %q", out.Value)
				}
				return err
			})
		}
		p.Check = func() error {
			sure, _ := claims(w)
			if count(sure) > 0 && ran == 0 || w.Faults() == 0 && (ran != 1 || count(sure) == 0) {
				return fmt.Errorf("the function ran %d times, and the clients report %v", ran, w.Errors())
			}
			return nil
		}
		return p
	}
}

func TestOnceRunsOnceInEverySchedule(t *testing.T) {
	explored(t, and(long, longer...), onces, explore.Options{Kinds: withKills})
}
