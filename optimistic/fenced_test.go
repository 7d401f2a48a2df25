package optimistic

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/fence"
)

// holder is a holder of a lock that nobody checks.
type holder struct {
	token fence.Token
	asked int
	lost  error
}

func (h *holder) Fence() fence.Token { return h.token }

func (h *holder) Guard(context.Context) error {
	h.asked++
	return h.lost
}

func TestAnEarlierHolderCannotWriteABlob(t *testing.T) {
	s, client := quiet(t, `{"n":1}`)
	early, late := &holder{token: 7}, &holder{token: 8}
	for _, h := range []*holder{early, late, late} { // equal fences are the same holder
		res, err := Update(t.Context(), Fenced(h, JSONBlob[counter](client)), increment, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.Requests != 2 {
			t.Errorf("%d requests, want 2", res.Requests)
		}
	}
	s.Reset()
	_, err := Update(t.Context(), Fenced(early, JSONBlob[counter](client)), increment, nil)
	refusal, ok := errors.AsType[*fence.Error](err)
	if !ok || !errors.Is(err, ErrFenced) || refusal.Mine != 7 || refusal.Stored != 8 || refusal.Resource != "box/n.json" {
		t.Errorf("err = %v, want ErrFenced with both tokens", err)
	}
	if got := ops(s); !slices.Equal(got, []string{"Get Blob"}) || count(t, client) != 4 {
		t.Errorf("sent %v, n = %d", got, count(t, client))
	}
}

func TestAHolderWhoWasPausedBetweenReadingAndWritingIsRefused(t *testing.T) {
	s, client := quiet(t, `{"n":1}`)
	early, late := &holder{token: 7}, &holder{token: 8}
	_, err := Update(t.Context(), Fenced(early, JSONBlob[counter](client)), func(ctx context.Context, c *counter) error {
		if Attempt(ctx) == 0 { // he sleeps, and another comes
			if _, err := Update(context.WithoutCancel(ctx), Fenced(late, JSONBlob[counter](client)), increment, nil); err != nil {
				t.Error(err)
			}
		}
		c.N = 100
		return nil
	}, nil)
	if !errors.Is(err, ErrFenced) || count(t, client) != 2 {
		t.Errorf("err = %v, n = %d:\n%v", err, count(t, client), s.Log())
	}
}

func TestAnUpdateThatChangesNothingClaimsTheBlob(t *testing.T) {
	_, client := quiet(t, `{"n":1}`)
	leave := func(context.Context, *counter) error { return nil }
	claimed, err := Update(t.Context(), Fenced(&holder{token: 8}, JSONBlob[counter](client)), leave, nil)
	if err != nil || !claimed.Changed {
		t.Fatalf("%+v, %v", claimed, err)
	}
	if again, err := Update(t.Context(), Fenced(&holder{token: 8}, JSONBlob[counter](client)), leave, nil); err != nil || again.Changed {
		t.Errorf("a second claim writes again: %+v, %v", again, err)
	}
	if _, err := Update(t.Context(), Fenced(&holder{token: 7}, JSONBlob[counter](client)), increment, nil); !errors.Is(err, ErrFenced) {
		t.Errorf("err = %v", err)
	}
	if _, err := Update(t.Context(), JSONBlob[counter](client), increment, nil); err != nil {
		t.Errorf("without a fence: %v", err)
	}
	if _, err := Update(t.Context(), Fenced(&holder{token: 7}, JSONBlob[counter](client)), increment, nil); !errors.Is(err, ErrFenced) {
		t.Errorf("a writer without a fence has wiped it: %v", err)
	}
}

func TestAHolderWhoHasLostTheLockSendsNoWrite(t *testing.T) {
	gone := errors.New("gone")
	s, client := quiet(t, `{"n":1}`)
	_, err := Update(t.Context(), Fenced(&holder{token: 7, lost: gone}, JSONBlob[counter](client)), increment, nil)
	if !errors.Is(err, gone) || !slices.Equal(ops(s), []string{"Get Blob"}) {
		t.Errorf("err = %v after %v", err, ops(s))
	}
}

func TestALostAnswerOfAFencedWriteIsResolved(t *testing.T) {
	s, client := quiet(t, `{"n":1}`)
	h := &holder{token: 7}
	s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Put Blob"), Count: 1})
	res, err := Update(t.Context(), Fenced(h, JSONBlob[counter](client)), increment, nil)
	if err != nil || res.Ambiguous != 1 || count(t, client) != 2 || h.asked != 2 {
		t.Errorf("%+v, %v, n = %d, the holder was asked %d times", res, err, count(t, client), h.asked)
	}
}

func TestADocumentUnderALockNoticesALaterHolder(t *testing.T) {
	_, client := quiet(t, `{"n":1}`)
	early, late := &holder{token: 7}, &holder{token: 8}
	doc, err := NewDocument(Fenced(early, JSONBlob[counter](client)), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := doc.Update(t.Context(), increment); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Update(t.Context(), Fenced(late, JSONBlob[counter](client)), increment, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := doc.Update(t.Context(), increment); !errors.Is(err, ErrFenced) || count(t, client) != 4 {
		t.Errorf("err = %v, n = %d", err, count(t, client))
	}
}

func TestAFencedBlobIsNotDeletedAndADamagedFenceLetsNobodyIn(t *testing.T) {
	_, client := quiet(t, `{"n":1}`)
	target := Fenced(&holder{token: 7}, JSONBlob[counter](client))
	v, err := Read(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Delete(t.Context(), target, v.State, nil); err == nil || !strings.Contains(err.Error(), "empty content") {
		t.Errorf("err = %v", err)
	}
	set := map[string]string{fence.Key: "x"}
	if _, err := Update(t.Context(), BlobMetadata(client.BlobClient()), func(_ context.Context, m *map[string]string) error {
		*m = set
		return nil
	}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := Update(t.Context(), target, increment, nil); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("err = %v", err)
	}
}

func TestAnEarlierHolderCannotWriteToAPartition(t *testing.T) {
	s, client := bank(t)
	early, late := &holder{token: 7}, &holder{token: 8}
	first, err := Transact(t.Context(), client, "p", move(1), &TransactOptions{Holder: early})
	if err != nil {
		t.Fatal(err)
	}
	billed(t, s, first, 4) // the fence, a, b, the transaction
	for range 2 {
		if _, err := Transact(t.Context(), client, "p", move(10), &TransactOptions{Holder: late}); err != nil {
			t.Fatal(err)
		}
	}
	s.Reset()
	if _, err = Transact(t.Context(), client, "p", move(50), &TransactOptions{Holder: early}); !errors.Is(err, ErrFenced) {
		t.Errorf("err = %v", err)
	}
	if got := balances(t, client, "a", "b"); !slices.Equal(got, []int{79, 121}) {
		t.Errorf("balances %v", got)
	}
}

func TestAHolderWhoWasPausedBeforeHisTransactionIsRefused(t *testing.T) {
	for name, change := range map[string]func(context.Context, *Tx) error{
		"of what he read":  move(50),
		"an insert":        func(_ context.Context, tx *Tx) error { return tx.Insert("new", account{}) },
		"a blind deletion": func(_ context.Context, tx *Tx) error { return tx.Delete("c") },
		"a blind put":      func(_ context.Context, tx *Tx) error { return tx.Put("c", account{Balance: 5}) },
	} {
		t.Run(name, func(t *testing.T) {
			s, client := bank(t)
			early, late := &holder{token: 7}, &holder{token: 8}
			claim := func(context.Context, *Tx) error { return nil }
			if _, err := Transact(t.Context(), client, "p", claim, &TransactOptions{Holder: early}); err != nil {
				t.Fatal(err)
			}
			_, err := Transact(t.Context(), client, "p", func(ctx context.Context, tx *Tx) error {
				if Attempt(ctx) == 0 {
					if _, err := Transact(context.WithoutCancel(ctx), client, "p", claim, &TransactOptions{Holder: late}); err != nil {
						t.Error(err)
					}
				}
				return change(ctx, tx)
			}, &TransactOptions{Holder: early})
			if !errors.Is(err, ErrFenced) {
				t.Errorf("err = %v:\n%v", err, s.Log())
			}
			if got := balances(t, client, "a", "b", "c", "new"); !slices.Equal(got, []int{100, 100, 100, -1}) {
				t.Errorf("balances %v", got)
			}
		})
	}
}

func TestAHolderThatHasLostTheLockSendsNoTransaction(t *testing.T) {
	gone := errors.New("gone")
	service, table := bank(t)
	_, err := Transact(t.Context(), table, "p", move(10), &TransactOptions{Holder: &holder{token: 7, lost: gone}})
	if !errors.Is(err, gone) || slices.Contains(ops(service), "Entity Group Transaction") {
		t.Errorf("err = %v after %v", err, ops(service))
	}
}

func TestALostResponseOfAFencedTransactionIsResolved(t *testing.T) {
	h := &holder{token: 7}
	service, table := bank(t)
	service.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
	moved, err := Transact(t.Context(), table, "p", move(10), &TransactOptions{Holder: h})
	if got := balances(t, table, "a", "b"); err != nil || moved.Ambiguous != 1 || !slices.Equal(got, []int{90, 110}) {
		t.Errorf("%+v, %v, %v", moved, err, got)
	}
}
