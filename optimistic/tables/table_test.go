package tables

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

// lost loses the response to the first request of an operation, which the service carries out.
func lost(s *aztest.Service, op string) {
	s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op(op), Count: 1})
	s.Reset()
}

func TestATableIsCreatedOnceAndDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		jobs := s.TableService().NewClient("jobs") // s.Table would create it
		r, err := CreateTable(t.Context(), jobs, nil)
		if err != nil || !r.Created || r.Requests != 1 || s.Requests() != 1 {
			t.Errorf("create: %+v, %v, %d requests", r, err, s.Requests())
		}
		if r, err := CreateTable(t.Context(), jobs, nil); !errors.Is(err, optimistic.ErrExists) || errors.Is(err, optimistic.ErrOutcomeUnknown) || r.Created {
			t.Errorf("again: %+v, %v, want ErrExists", r, err)
		}
		lost(s, "Delete Table")
		if r, err := DeleteTable(t.Context(), jobs, nil); err != nil || !r.Changed || r.Ambiguous != 1 || r.Resolved != 1 || s.Requests() != 2 {
			t.Errorf("delete: %+v, %v, %d requests, want it gone", r, err, s.Requests())
		}
		if _, err := DeleteTable(t.Context(), s.TableService().NewClient("none"), nil); !errors.Is(err, optimistic.ErrNotFound) {
			t.Errorf("delete of no table: %v", err)
		}
	})
}

func TestALostResponseToTheCreationOfATableIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		jobs := s.TableService().NewClient("jobs")
		lost(s, "Create Table")
		_, err := CreateTable(t.Context(), jobs, nil)
		unknown, ok := errors.AsType[*optimistic.UnknownError](err)
		if !ok || unknown.Resource != "jobs" || s.Requests() != 2 {
			t.Fatalf("%v, %d requests, want it unknown", err, s.Requests())
		}
		if again := unknown.Resolve(t.Context()); !errors.Is(again, optimistic.ErrOutcomeUnknown) {
			t.Errorf("Resolve = %v", again)
		}
	})
}

func TestAnUpsertOverwritesAnEntity(t *testing.T) {
	for _, fault := range []bool{false, true} {
		for mode, want := range map[Mode]int{MergeChanges: 2, MergeGiven: 2, ReplaceWhole: 1, ReplaceGiven: 1} {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(nil)
				target := NewEntity[Properties](s.Table("jobs"), "eu", "17")
				target.Mode = mode
				for _, name := range []string{"n", "m"} {
					s.Reset()
					requests := 1
					if fault {
						s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Count: 1})
						requests = 2
					}
					r, err := Upsert(t.Context(), target, Properties{name: {Type: EDMInt32, Value: "1"}}, nil)
					if err != nil || !r.Changed || r.ETag == "" || r.Requests != requests || s.Requests() != requests {
						t.Errorf("%+v, %v, %d requests, want %d", r, err, s.Requests(), requests)
					}
				}
				v, err := optimistic.Read(t.Context(), target, nil)
				if err != nil || len(v.Value) != want {
					t.Errorf("mode %v: %v, %v, want %d properties", mode, v.Value, err, want)
				}
			})
		}
	}
}

func TestAnUpsertRefusesAnotherEntitysKeys(t *testing.T) {
	s := aztest.New(nil)
	_, err := Upsert(t.Context(), NewEntity[map[string]any](s.Table("jobs"), "eu", "17"), map[string]any{"RowKey": "18"}, nil)
	if err == nil || s.Requests() != 0 {
		t.Errorf("%v, %d requests, want it refused", err, s.Requests())
	}
}
