package election

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
)

func TestOneLeadsAtATime(t *testing.T) {
	for seed := range uint64(20) {
		var v pesstest.Visits
		pesstest.Among(t, seed, 4, func(p *pesstest.Process) {
			e, err := New(lockerOver(p.T, p.Client, &pessimistic.LockerOptions{Duration: 15 * time.Second, Owner: fmt.Sprint(p.ID)}), "leader", nil)
			if err != nil {
				t.Error(err)
				return
			}
			for range 3 {
				err := e.Run(context.Background(), func(_ context.Context, h *pessimistic.Hold) error {
					v.Visit(p, "lead", h, nil)
					return nil
				})
				if err != nil && !errors.Is(err, pessimistic.ErrLost) {
					t.Error(err)
				}
			}
		})
		terms := v.All()
		for i, s := range terms {
			if i > 0 && (s.Fence <= terms[i-1].Fence || terms[i-1].To.After(s.From)) {
				t.Errorf("seed %d: %+v after %+v", seed, s, terms[i-1])
			}
		}
		if len(terms) < 8 {
			t.Errorf("seed %d: %d terms", seed, len(terms))
		}
	}
}
