package tables

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// transactions are run against every fault. Each ends with the balances given, of a, b, c and x; -1 is none.
var transactions = []struct {
	name      string
	change    func(context.Context, *Tx) error
	want      []int
	traceless bool // nothing is left to know it by
}{
	{name: "updates", change: move(30), want: []int{70, 130, 100, -1}},
	{name: "a read and an update",
		change: func(ctx context.Context, tx *Tx) error {
			var c account
			if _, err := tx.Get(ctx, "c", &c); err != nil {
				return err
			}
			var a account
			if _, err := tx.Get(ctx, "a", &a); err != nil {
				return err
			}
			return tx.Update("a", account{Balance: a.Balance + c.Balance})
		},
		want: []int{200, 100, 100, -1},
	},
	{name: "a row that moves",
		change: func(ctx context.Context, tx *Tx) error {
			var a account
			if found, err := tx.Get(ctx, "a", &a); err != nil || !found {
				return errors.Join(err, errors.New("a is gone"))
			}
			return errors.Join(tx.Delete("a"), tx.Insert("x", a))
		},
		want: []int{-1, 100, 100, 100},
	},
	{name: "inserts, not read", change: func(_ context.Context, tx *Tx) error { return tx.Insert("x", account{Balance: 1}) }, want: []int{100, 100, 100, 1}},
	{name: "an insert and a deletion, not read",
		change: func(_ context.Context, tx *Tx) error {
			return errors.Join(tx.Delete("a"), tx.Insert("x", account{Balance: 1}))
		},
		want: []int{-1, 100, 100, 1},
	},
	{name: "unconditional",
		change: func(_ context.Context, tx *Tx) error {
			return errors.Join(tx.Put("x", account{Balance: 1}), tx.Merge("a", account{Balance: 5}), tx.Upsert("b", account{Balance: 6}))
		},
		want: []int{5, 6, 100, 1},
	},
	{name: "a deletion of what is there, and a put",
		change: func(_ context.Context, tx *Tx) error {
			return errors.Join(tx.Delete("a"), tx.Put("x", account{Balance: 1}))
		},
		want: []int{-1, 100, 100, 1},
	},
	{name: "deletions", traceless: true,
		change: func(ctx context.Context, tx *Tx) error {
			for _, row := range []string{"a", "b"} {
				if found, err := tx.Get(ctx, row, nil); err != nil || !found {
					return errors.Join(err, errAlreadyGone)
				}
			}
			return errors.Join(tx.Delete("a"), tx.Delete("b"))
		},
		want: []int{-1, -1, 100, -1},
	},
	{name: "deletions, not read", traceless: true,
		change: func(_ context.Context, tx *Tx) error { return errors.Join(tx.Delete("a"), tx.Delete("b")) },
		want:   []int{-1, -1, 100, -1},
	},
}

var errAlreadyGone = errors.New("gone already")

// TestEveryTransactionUnderEveryFault: success means that all of it was applied once; only a traceless transaction may
// have an unknown outcome.
func TestEveryTransactionUnderEveryFault(t *testing.T) {
	for _, tt := range transactions {
		optest.UnderEvery(t, tt.name, aztest.Writes, func(t *testing.T, name string, fault aztest.Fault) {
			s, client := bank(t)
			s.SetFaults(fault)
			res, err := Transact(t.Context(), client, "p", tt.change, &TransactOptions{SendOptions: optest.Recreate})
			s.SetFaults()
			s.Flush()
			if got := balances(t, client, "a", "b", "c", "x"); !slices.Equal(got, tt.want) {
				t.Errorf("balances %v, want %v\n%v", got, tt.want, s.Log())
			}
			open := errors.Is(err, optimistic.ErrOutcomeUnknown) || name == "delivered twice"
			if err != nil && (!tt.traceless || !open) {
				t.Errorf("%+v, %v\n%v", res, err, s.Log())
			}
			if err == nil && !res.Changed {
				t.Errorf("%+v\n%v", res, s.Log())
			}
		})
	}
}

// TestFaultsOfReadsInATransaction: a read can be repeated.
func TestFaultsOfReadsInATransaction(t *testing.T) {
	optest.UnderEvery(t, "query", aztest.Op("Query Entities"), func(t *testing.T, _ string, fault aztest.Fault) {
		s, client := bank(t)
		s.SetFaults(fault)
		res, err := Transact(t.Context(), client, "p", move(30), nil)
		s.SetFaults()
		if got := balances(t, client, "a", "b"); err != nil || res.Ambiguous != 0 || !slices.Equal(got, []int{70, 130}) {
			t.Errorf("%+v, %v, %v", res, err, got)
		}
	})
}

// TestALostTransactionIsResolvedByAnyOfItsEntities: others delete or overwrite some of what it wrote before it can look.
func TestALostTransactionIsResolvedByAnyOfItsEntities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tt := range map[string]struct {
			fault   aztest.FaultKind
			meddle  func(t *testing.T, client *aztables.Client)
			applied bool
			err     error
		}{
			"applied, then one deleted":             {aztest.LoseAnswer, del("a"), true, nil},
			"applied, then one overwritten":         {aztest.LoseAnswer, overwrite("a"), true, nil},
			"applied, then all deleted":             {aztest.LoseAnswer, del("a", "b"), true, optimistic.ErrOutcomeUnknown},
			"not applied, one changed":              {aztest.LoseRequest, bump("b"), false, optimistic.ErrConflict},
			"not applied, one deleted":              {aztest.LoseRequest, del("a"), false, optimistic.ErrOutcomeUnknown},
			"not applied, one deleted, one changed": {aztest.LoseRequest, func(t *testing.T, client *aztables.Client) { del("a")(t, client); bump("b")(t, client) }, false, optimistic.ErrConflict},
		} {
			s, client := bank(t)
			for _, row := range []string{"a", "b"} {
				bump(row)(t, client) // so that there is a lineage
			}
			meddle := tt.meddle
			s.SetFaults(aztest.Fault{Kind: tt.fault, Match: aztest.Op("Entity Group Transaction"), Count: 1})
			res, err := Transact(t.Context(), meddling(t, s, func() {
				if meddle != nil {
					tt.meddle(t, client)
					meddle = nil
				}
			}), "p", move(10), &TransactOptions{Attempts: 1})
			if !errors.Is(err, tt.err) || (err == nil) != res.Changed {
				t.Errorf("%s: %+v, %v; want %v", name, res, err, tt.err)
			}
			if name == "not applied, one deleted" && !strings.Contains(err.Error(), "still as it was") {
				t.Errorf("%s: %v; the other one shows that nothing has happened so far", name, err)
			}
			if unknown, ok := errors.AsType[*optimistic.UnknownError](err); ok {
				if again := unknown.Resolve(t.Context()); !errors.Is(again, optimistic.ErrOutcomeUnknown) {
					t.Errorf("%s: asked again: %v", name, again)
				}
			}
		}
	})
}

// TestAWriteToAnUnreadRowKeepsTheProofOfItsCreation: an insert whose response was lost, and whose entity has been overwritten
// unread, must not take the overwriting for the creation of another: it was applied.
func TestAWriteToAnUnreadRowKeepsTheProofOfItsCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, blind := range map[string]func(*Tx) error{
			"put":     func(tx *Tx) error { return tx.Put("x", account{Balance: 2}) },
			"upsert":  func(tx *Tx) error { return tx.Upsert("x", account{Balance: 2}) },
			"replace": func(tx *Tx) error { return tx.Replace("x", account{Balance: 2}) },
			"merge":   func(tx *Tx) error { return tx.Merge("x", account{Balance: 2}) },
		} {
			s, client := bank(t)
			s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Insert Entity"), Count: 1})
			creator := tableVia(t, s, "bank", policyFunc(func(r *policy.Request) (*http.Response, error) {
				response, err := r.Next()
				if err != nil {
					if _, failed := Transact(context.Background(), client, "p", func(_ context.Context, tx *Tx) error { return blind(tx) }, nil); failed != nil {
						t.Error(failed)
					}
				}
				return response, err
			}))
			if res, err := optimistic.Create(t.Context(), NewEntity[account](creator, "p", "x"), account{Balance: 1}, nil); err != nil || !res.Created || res.Resolved != 1 {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
		}
	})
}

func del(rows ...string) func(*testing.T, *aztables.Client) {
	return func(t *testing.T, client *aztables.Client) {
		for _, row := range rows {
			if _, err := client.DeleteEntity(context.Background(), "p", row, nil); err != nil {
				t.Error(err)
			}
		}
	}
}

func overwrite(row string) func(*testing.T, *aztables.Client) {
	return func(t *testing.T, client *aztables.Client) {
		if _, err := client.UpsertEntity(context.Background(), []byte(`{"PartitionKey":"p","RowKey":"`+row+`","balance":5}`), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace}); err != nil {
			t.Error(err)
		}
	}
}

func bump(row string) func(*testing.T, *aztables.Client) {
	return func(t *testing.T, client *aztables.Client) {
		if _, err := optimistic.Update(context.Background(), NewEntity[account](client, "p", row), func(_ context.Context, a *account) error { a.Balance++; return nil }, nil); err != nil {
			t.Error(err)
		}
	}
}

// meddling returns a client that calls meddle after each transaction that it sends.
func meddling(t *testing.T, s *aztest.Service, meddle func()) *aztables.Client {
	return tableVia(t, s, "bank", policyFunc(func(r *policy.Request) (*http.Response, error) {
		batch := strings.HasSuffix(r.Raw().URL.Path, "$batch")
		response, err := r.Next()
		if batch {
			meddle()
		}
		return response, err
	}))
}

type policyFunc func(*policy.Request) (*http.Response, error)

func (f policyFunc) Do(r *policy.Request) (*http.Response, error) { return f(r) }

// TestAnUnreadableResponseIsResolvedByTheLineage: the SDK takes some of these for successes and panics over others.
// The transaction is in fact carried out, and the lineage shows it.
func TestAnUnreadableResponseIsResolvedByTheLineage(t *testing.T) {
	for name, spoil := range map[string]func(string) string{
		"empty":             func(string) string { return "" },
		"one line":          func(string) string { return "x" },
		"no multipart":      func(string) string { return "--x\r\n\r\nhello\r\n--x--\r\n" },
		"cut in half":       func(s string) string { return s[:len(s)/2] },
		"without the ETags": func(s string) string { return strings.ReplaceAll(s, "ETag:", "NoTag:") },
		"one response short": func(s string) string {
			at := strings.LastIndex(s, "HTTP/1.1 204")
			from := strings.LastIndex(s[:at], "--changesetresponse")
			to := strings.Index(s[at:], "--changesetresponse") + at
			return s[:from] + s[to:]
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := bank(t)
				first := true
				spoiled := tableVia(t, s, "bank", policyFunc(func(r *policy.Request) (*http.Response, error) {
					response, err := r.Next()
					if err == nil && first && strings.HasSuffix(r.Raw().URL.Path, "$batch") {
						first = false
						body, _ := io.ReadAll(response.Body)
						response.Body = io.NopCloser(strings.NewReader(spoil(string(body))))
					}
					return response, err
				}))
				res, err := Transact(t.Context(), spoiled, "p", move(30), nil)
				if got := balances(t, client, "a", "b"); err != nil || res.Ambiguous != 1 || res.Resolved != 1 || !slices.Equal(got, []int{70, 130}) {
					t.Errorf("%+v, %v, balances %v", res, err, got)
				}
			})
		})
	}
}

func TestATransactionIsResolvedWhenItsCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := bank(t)
		s.SetFaults(aztest.Fault{Kind: aztest.Slow, Delay: 3 * time.Second, Match: aztest.Op("Entity Group Transaction")})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := Transact(ctx, client, "p", move(30), nil)
		got := balances(t, client, "a", "b")
		if !errors.Is(err, optimistic.ErrOutcomeUnknown) && !errors.Is(err, context.DeadlineExceeded) || !slices.Equal(got, []int{100, 100}) {
			t.Errorf("given up before it was carried out: %v, balances %v", err, got)
		}
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Entity Group Transaction")})
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		_, err = Transact(ctx, meddling(t, s, cancel), "p", move(30), nil)
		if got = balances(t, client, "a", "b"); err != nil || !slices.Equal(got, []int{70, 130}) {
			t.Errorf("given up while the response was under way: %v, balances %v", err, got)
		}
	})
}

// transfers is the property for transactions: writers move money between random accounts and number their transfers in
// a row of their own. No transfer happens twice or by half, and no money is made.
type transfers struct {
	writers, each, among int
	noLineage            bool
}

func (w transfers) play(t *testing.T, seed uint64) optest.Verdicts {
	s := aztest.New(&aztest.Options{Seed: seed, Latency: optest.Latencies(int64(seed))})
	p := optest.Property{Service: s, Faults: optest.Unreliable(aztest.Op("Entity Group Transaction")), Each: w.each, OneTry: 3, Naive: w.noLineage}
	for i := range w.among {
		if _, err := optimistic.Create(t.Context(), NewEntity[account](s.Table("bank"), "p", fmt.Sprint("a", i)), account{Balance: 1000}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range w.writers {
		client, rng := s.Table("bank"), rand.New(rand.NewPCG(seed, uint64(i)))
		p.Writers = append(p.Writers, func(n, attempts int) (found int, err error) {
			from, to := fmt.Sprint("a", rng.IntN(w.among)), fmt.Sprint("a", rng.IntN(w.among))
			_, err = Transact(t.Context(), client, "p", transfer(from, to, fmt.Sprint("w", i), n, &found),
				&TransactOptions{Attempts: attempts, Elapsed: -1, SendOptions: optimistic.SendOptions{NoLineage: w.noLineage}})
			return found, err
		})
	}
	v, sum := p.Run(), 0
	for i := range w.among {
		final, err := optimistic.Read(t.Context(), NewEntity[account](s.Table("bank"), "p", fmt.Sprint("a", i)), nil)
		if err != nil {
			t.Fatal(err)
		}
		sum += final.Value.Balance
	}
	if sum != 1000*w.among {
		v.Violations = append(v.Violations, fmt.Sprintf("there is %d, and was %d", sum, 1000*w.among))
	}
	return v
}

// transfer moves 1 from an account to another one, and counts it in the row own.
func transfer(from, to, own string, n int, found *int) func(context.Context, *Tx) error {
	return func(ctx context.Context, tx *Tx) error {
		var last optest.Counter
		if _, err := tx.Get(ctx, own, &last); err != nil {
			return err
		}
		*found = last.N
		for row, amount := range map[string]int{from: -1, to: +1} {
			var a account
			if from == to {
				amount = 0
			}
			if _, err := tx.Get(ctx, row, &a); err != nil {
				return err
			}
			a.Balance += amount
			if err := tx.Update(row, a); err != nil {
				return err
			}
		}
		return tx.Put(own, optest.Counter{N: n})
	}
}

func TestNoTransferIsMadeTwiceOrByHalf(t *testing.T) {
	each := map[bool]int{true: 8, false: 40 / min(optest.RaceScale, 10)}[testing.Short() && optest.RaceScale == 1]
	all := optest.Holds(t, 2, transfers{writers: 32, each: each, among: 8}.play)
	if all.Conflict == 0 || all.Success < all.Operations/2 {
		t.Errorf("the workload is too tame, or too wild: %+v", all)
	}
}

func TestThePropertyOfTransactionsConvictsALoopWithoutLineage(t *testing.T) {
	optest.Convicts(t, transfers{writers: 4, each: 60, among: 3, noLineage: true}.play)
}
