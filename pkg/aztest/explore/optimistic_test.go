package explore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/azconc/azconc/optimistic/appends"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest/explore"
)

// claims says of each client whether it reports success, and whether it may have succeeded.
func claims(w *explore.World) (sure, possible []bool) {
	for i, err := range w.Errors() {
		unknown := errors.Is(err, optimistic.ErrOutcomeUnknown) || w.Killed(i)
		sure, possible = append(sure, err == nil), append(possible, err == nil || unknown)
	}
	return sure, possible
}

func count(all []bool) (n int) {
	for _, one := range all {
		if one {
			n++
		}
	}
	return n
}

// Each client creates the blob with its own number.
func creators(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		var p explore.Program
		for i := range clients {
			p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error {
				_, err := optimistic.Create(ctx, blobs.NewJSON[int](c.BlockBlob("box", "n")), i+1, nil)
				return err
			})
		}
		p.Check = func() error {
			sure, possible := claims(w)
			winner, err := counter(w)
			if err != nil {
				return err
			}
			if count(sure) > 1 || winner > 0 && !possible[winner-1] || winner == 0 && count(sure) > 0 {
				return fmt.Errorf("client %d created the blob, and they report %v", winner-1, w.Errors())
			}
			for i, yes := range sure {
				if yes && winner != i+1 {
					return fmt.Errorf("client %d reports success, and the blob is client %d's", i, winner-1)
				}
			}
			return nil
		}
		return p
	}
}

func TestOneCreatorWinsInEverySchedule(t *testing.T) {
	explored(t, and(writes, 2, 3, 0, 3, 2, 0), creators, explore.Options{})
}

// Each client replaces the version that it has read by its own number, once.
func replacers(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		p := increments(clients, nil)(w)
		for i := range p.Clients {
			p.Clients[i] = func(ctx context.Context, c *explore.Client) error {
				target := blobs.NewJSON[int](c.BlockBlob("box", "n"))
				v, err := optimistic.Read(ctx, target, nil)
				if err != nil {
					return err
				}
				_, err = optimistic.Replace(ctx, target, v, i+1, nil)
				return err
			}
		}
		p.Check = func() error {
			for i, err := range w.Errors() {
				unknown := errors.Is(err, optimistic.ErrOutcomeUnknown)
				if n := w.Changes(i); n > 1 || n == 0 && err == nil || n == 1 && err != nil && !unknown {
					return fmt.Errorf("%d writes of client %d were applied, and it reports %w", n, i, err)
				}
			}
			return nil
		}
		return p
	}
}

func TestAVersionIsReplacedOnceInEverySchedule(t *testing.T) {
	explored(t, and(writes, 2, 3, 0, 3, 2, 0), replacers, explore.Options{})
}

// Each client claims a ticket by deleting it.
func claimants(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		start := w.Service.BlockBlob("box", "n")
		if _, err := start.UploadBuffer(context.Background(), []byte("7"), nil); err != nil {
			panic(err)
		}
		var p explore.Program
		for range clients {
			p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error {
				ticket := blobs.NewJSON[int](c.BlockBlob("box", "n"))
				v, err := optimistic.Read(ctx, ticket, nil)
				if err != nil {
					return err
				}
				_, err = optimistic.Delete(ctx, ticket, v.State, nil)
				return err
			})
		}
		p.Check = func() error {
			sure, possible := claims(w)
			left, err := counter(w)
			if err != nil {
				return err
			}
			if count(sure) > 1 || left > 0 && count(sure) > 0 || left == 0 && count(possible) == 0 {
				return fmt.Errorf("the ticket is left: %t, and the clients report %v", left > 0, w.Errors())
			}
			return nil
		}
		return p
	}
}

// withoutTwice leaves out the one fault that a deletion cannot see through, as the doc comment of Delete says: the second
// delivery finds nothing, and nothing shows whose deletion came first.
var withoutTwice = []explore.Kind{explore.LoseResponse, explore.LoseRequest, explore.Hold, explore.Wait}

func TestATicketIsClaimedOnceInEverySchedule(t *testing.T) {
	explored(t, and(writes, 2, 3, 0, 3, 2, 0), claimants, explore.Options{Kinds: withoutTwice})
}

// One client issues a ticket; the others each claim what they find. A ticket that is issued again after it was claimed would
// be claimed twice.
func issued(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		claim := claimants(clients)(w)
		if _, err := w.Service.BlockBlob("box", "n").Delete(context.Background(), nil); err != nil {
			panic(err)
		}
		p := explore.Program{Clients: claim.Clients}
		p.Clients[0] = func(ctx context.Context, c *explore.Client) error {
			_, err := optimistic.Create(ctx, blobs.NewJSON[int](c.BlockBlob("box", "n")), 7, nil)
			return err
		}
		p.Check = func() error {
			sure, possible := claims(w)
			left, err := counter(w)
			if err != nil {
				return err
			}
			claimed := count(sure[1:])
			if claimed > 1 || claimed > 0 && left > 0 || !possible[0] && (claimed > 0 || left > 0) {
				return fmt.Errorf("the ticket is left: %t, and the clients report %v", left > 0, w.Errors())
			}
			return nil
		}
		return p
	}
}

func TestATicketIsIssuedOnceInEverySchedule(t *testing.T) {
	explored(t, and(writes[1:], 2, 3, 0, 3, 2, 0), issued, explore.Options{Kinds: withoutTwice})
}

// documents is a program of clients that each add 1 so many times through a Document of their own.
func documents(times int) func(clients int) func(*explore.World) explore.Program {
	return func(clients int) func(*explore.World) explore.Program { return documentsOf(clients, times) }
}

func documentsOf(clients, times int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		p := increments(clients, nil)(w)
		ends := make([]outcomes, clients)
		for i := range p.Clients {
			p.Clients[i] = func(ctx context.Context, c *explore.Client) error {
				d, err := optimistic.NewDocument(blobs.NewJSON[int](c.BlockBlob("box", "n")), nil)
				if err != nil {
					return err
				}
				for range times {
					_, err := d.Update(ctx, func(_ context.Context, n *int) error { *n++; return nil })
					ends[i].add(err)
				}
				return nil
			}
		}
		p.Check = func() error {
			got, err := counter(w)
			if err != nil {
				return err
			}
			low, high := 0, 0
			for _, o := range ends {
				low, high = low+o.applied, high+o.applied+o.unknown
			}
			if got < low || got > high {
				return fmt.Errorf("the blob holds %d, and the outcomes allow %d to %d", got, low, high)
			}
			return nil
		}
		return p
	}
}

type outcomes struct {
	applied, unknown int
	foreign          bool // of a client outside azconc
}

func (o *outcomes) add(err error) {
	switch {
	case err == nil:
		o.applied++
	case errors.Is(err, optimistic.ErrOutcomeUnknown):
		o.unknown++
	}
}

func TestADocumentAppliesOnceInEverySchedule(t *testing.T) {
	explored(t, and(usual, 2, 3, 0), documents(2), explore.Options{})
	explored(t, writes[5:], documents(1), explore.Options{})
}

// Each client moves 1 from one entity to another in a transaction.
func transfers(clients int) func(*explore.World) explore.Program {
	type account struct{ Balance int }
	return func(w *explore.World) explore.Program {
		ctx := context.Background()
		table := w.Service.Table("bank")
		for row, balance := range map[string]int{"from": 10, "into": 0} {
			if _, err := optimistic.Create(ctx, tables.NewEntity[account](table, "p", row), account{balance}, nil); err != nil {
				panic(err)
			}
		}
		var p explore.Program
		for range clients {
			p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error {
				_, err := tables.Transact(ctx, c.Table("bank"), "p", func(ctx context.Context, tx *tables.Tx) error {
					var from, into account
					if _, err := tx.Get(ctx, "from", &from); err != nil {
						return err
					}
					if _, err := tx.Get(ctx, "into", &into); err != nil {
						return err
					}
					if err := tx.Upsert("from", account{from.Balance - 1}); err != nil {
						return err
					}
					return tx.Upsert("into", account{into.Balance + 1})
				}, nil)
				return err
			})
		}
		p.Check = func() error {
			var balances [2]int
			for i, row := range []string{"from", "into"} {
				v, err := optimistic.Read(ctx, tables.NewEntity[account](table, "p", row), nil)
				if err != nil {
					return err
				}
				balances[i] = v.Value.Balance
			}
			sure, possible := claims(w)
			if moved := balances[1]; balances[0]+moved != 10 || moved < count(sure) || moved > count(possible) {
				return fmt.Errorf("the balances are %v, and the clients report %v", balances, w.Errors())
			}
			return nil
		}
		return p
	}
}

func TestATransferIsMadeOnceInEverySchedule(t *testing.T) {
	explored(t, and(several, 3, 1, 0, 2, 3, 0), transfers, explore.Options{})
}

// Each client appends a record of its own to a log.
func appenders(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		w.Service.BlockBlob("box", "x") // makes the container
		log := w.Service.Container("box").NewAppendBlobClient("log")
		if _, err := log.Create(context.Background(), nil); err != nil {
			panic(err)
		}
		var p explore.Program
		for i := range clients {
			p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error {
				_, err := appends.AppendRecord(ctx, c.Container("box").NewAppendBlobClient("log"), fmt.Append(nil, i), nil)
				return err
			})
		}
		p.Check = func() error {
			resp, err := log.DownloadStream(context.Background(), nil)
			if err != nil {
				return err
			}
			found := make([]int, clients)
			for r, err := range appends.Records(resp.Body) {
				if err != nil {
					return err
				}
				found[r.Data[0]-'0']++
			}
			sure, possible := claims(w)
			for i, n := range found {
				if n > 1 || n == 0 && sure[i] || n == 1 && !possible[i] {
					return fmt.Errorf("the log has %v records of the clients, and they report %v", found, w.Errors())
				}
			}
			return nil
		}
		return p
	}
}

func TestARecordIsAppendedOnceInEverySchedule(t *testing.T) {
	explored(t, and(writes, 2, 3, 0, 3, 2, 0, 2, 4, 2), appenders, explore.Options{})
}
