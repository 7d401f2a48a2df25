package tables

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/google/go-cmp/cmp"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

// stored is an entity as the service has it, with its lineage.
func stored(t *testing.T, client *aztables.Client, row string) (Properties, protocol.State) {
	t.Helper()
	e, state, err := readEntity(context.Background(), client, "p", row)
	if err != nil {
		t.Fatal(err)
	}
	return e.properties, state
}

func TestAnEntityUpdateCostsTwoRequests(t *testing.T) {
	for name, mode := range map[string]Mode{"Merge Entity": MergeChanges, "Update Entity": ReplaceWhole} {
		t.Run(name, func(t *testing.T) {
			s, client := optest.Row(t, `{"n":41}`)
			target := NewEntity[optest.Counter](client, "p", "r")
			target.Mode = mode
			res, err := optimistic.Update(t.Context(), target, optest.Increment, nil)
			if err != nil || !res.Changed || res.Created || res.Attempts != 1 {
				t.Fatalf("Update = %+v, %v", res, err)
			}
			optest.Requests(t, s, res, 2)
			if log := s.Log(); log[1].Op != name || log[1].Header.Get("If-Match") != string(res.BaseETag) || res.BaseETag == "" {
				t.Errorf("%v with If-Match %s on %s", log[1], log[1].Header.Get("If-Match"), res.BaseETag)
			}
			_, state := stored(t, client, "r")
			if n := optest.Number(t, client, "r"); n != 42 || state.ETag != res.ETag || !state.Lineage.Has(res.WriteID) {
				t.Errorf("n = %d at %s with %v, Update said %+v", n, state.ETag, state.Lineage, res)
			}
		})
	}
}

func TestAnEntityIsCreatedWithAnInsert(t *testing.T) {
	s, client := optest.Row(t, "")
	res, err := optimistic.Update(t.Context(), NewEntity[map[string]any](client, "p", "r"), func(_ context.Context, m *map[string]any) error {
		(*m)["n"] = 1 // the map of an entity that does not exist can be written to
		return nil
	}, &optimistic.UpdateOptions{Create: true})
	if err != nil || !res.Created {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	optest.Requests(t, s, res, 2)
	if op := s.Log()[1].Op; op != "Insert Entity" || optest.Number(t, client, "r") != 1 {
		t.Errorf("sent %s, n = %d", op, optest.Number(t, client, "r"))
	}
	if _, err := optimistic.Create(t.Context(), NewEntity[optest.Counter](client, "p", "r"), optest.Counter{N: 9}, nil); !errors.Is(err, optimistic.ErrExists) {
		t.Errorf("create again: %v", err)
	}
	if optest.Number(t, client, "r") != 1 {
		t.Error("a create that failed has changed the entity")
	}
}

func TestNoChangeOfAnEntitySendsNoWrite(t *testing.T) {
	type partial struct {
		Whole   float64 `json:"whole"`
		Long    int64   `json:"long"`
		Absent  int     `json:"absent"`
		Pointer *string `json:"pointer"`
	}
	s, client := optest.Row(t, everyType)
	for name, update := range map[string]func() (optimistic.Result, error){
		"struct": func() (optimistic.Result, error) {
			return optimistic.Update(t.Context(), NewEntity[partial](client, "p", "r"), func(context.Context, *partial) error { return nil }, nil)
		},
		"map": func() (optimistic.Result, error) {
			return optimistic.Update(t.Context(), NewEntity[map[string]any](client, "p", "r"), func(context.Context, *map[string]any) error { return nil }, nil)
		},
		"properties": func() (optimistic.Result, error) {
			return optimistic.Update(t.Context(), NewEntity[Properties](client, "p", "r"), func(context.Context, *Properties) error { return nil }, nil)
		},
	} {
		s.Reset()
		res, err := update()
		if err != nil || res.Changed {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		optest.Requests(t, s, res, 1)
	}
}

// TestPropertiesThatTDoesNotNameAreKept: through the SDK's own values 3.0 would come back as the integer 3, 2^53+1 as 2^53, and a
// replacement would drop what the struct does not name.
func TestPropertiesThatTDoesNotNameAreKept(t *testing.T) {
	for name, mode := range map[string]Mode{"merge": MergeChanges, "replace": ReplaceWhole} {
		t.Run(name, func(t *testing.T) {
			_, client := optest.Row(t, `{"n":1,"N":7,`+everyType[1:])
			before, _ := stored(t, client, "r")
			target := NewEntity[optest.Counter](client, "p", "r")
			target.Mode = mode
			for range 3 {
				if _, err := optimistic.Update(t.Context(), target, optest.Increment, nil); err != nil {
					t.Fatal(err)
				}
			}
			after, state := stored(t, client, "r")
			before["n"] = Property{EDMInt32, "4"}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(state.Lineage.Writes) != 3 {
				t.Errorf("lineage %v, want three writes", state.Lineage)
			}
		})
	}
}

// The update was refused, and blamed the zero time that nobody had given.
func TestATimeThatIsNotStoredYetCanBeSet(t *testing.T) {
	_, client := optest.Row(t, `{"n":41}`)
	type dated struct {
		N     int       `json:"n"`
		Since time.Time `json:"since"`
	}
	_, err := optimistic.Update(t.Context(), NewEntity[dated](client, "p", "r"), func(_ context.Context, v *dated) error {
		v.Since = time.Unix(1e9, 0)
		return nil
	}, nil)
	got, _ := stored(t, client, "r")
	want := Properties{"n": {EDMInt32, "41"}, "since": {EDMDateTime, "2001-09-09T01:46:40Z"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v; -want +got:\n%s", err, diff)
	}
}

func TestRemovingAPropertyReplacesTheEntity(t *testing.T) {
	s, client := optest.Row(t, `{"n":1,"kept":"9007199254740993","kept@odata.type":"Edm.Int64","note":"x"}`)
	type noted struct {
		N    int    `json:"n"`
		Note string `json:"note,omitempty"`
	}
	res, err := optimistic.Update(t.Context(), NewEntity[noted](client, "p", "r"), func(_ context.Context, v *noted) error { v.Note = ""; return nil }, nil)
	if err != nil || !res.Changed || s.Log()[1].Op != "Update Entity" {
		t.Fatalf("Update = %+v, %v by %v", res, err, s.Log())
	}
	got, state := stored(t, client, "r")
	if diff := cmp.Diff(Properties{"n": {EDMInt32, "1"}, "kept": {EDMInt64, "9007199254740993"}}, got); diff != "" || len(state.Lineage.Writes) != 1 {
		t.Errorf("(-want +got):\n%s%v", diff, state.Lineage)
	}
	if _, err := optimistic.Update(t.Context(), NewEntity[Properties](client, "p", "r"), func(_ context.Context, p *Properties) error {
		delete(*p, "kept")
		(*p)["big"] = Property{EDMInt64, "5"}
		return nil
	}, nil); err != nil {
		t.Fatal(err)
	}
	got, _ = stored(t, client, "r")
	if diff := cmp.Diff(Properties{"n": {EDMInt32, "1"}, "big": {EDMInt64, "5"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnEntityThatTheServiceWouldRefuseIsNotSent(t *testing.T) {
	s, client := optest.Row(t, `{"n":1}`)
	text := strings.Repeat("x", 32<<10)
	fill := func(n int, value string) func(*Properties) {
		return func(p *Properties) {
			for i := range n {
				(*p)[fmt.Sprintf("p%03d", i)] = Property{EDMString, value}
			}
		}
	}
	for name, tt := range map[string]struct {
		change func(*Properties)
		want   string
	}{
		"too many properties":  {fill(251, ""), "252 properties, and 1 for the lineage"},
		"a text too long":      {fill(1, text+"x"), "65538 bytes"},
		"bytes too long":       {func(p *Properties) { (*p)["b"] = binary(64<<10 + 1) }, "65537 bytes"},
		"too large":            {fill(16, text), "1048576"},
		"the lineage's name":   {func(p *Properties) { (*p)[optimistic.LineageKey] = Property{EDMString, ""} }, "azconc's own"},
		"another row":          {func(p *Properties) { (*p)["RowKey"] = Property{EDMString, "q"} }, "cannot be changed"},
		"a name of 256":        {func(p *Properties) { (*p)[strings.Repeat("n", 256)] = Property{EDMString, ""} }, "255"},
		"a value not of type":  {func(p *Properties) { (*p)["x"] = Property{EDMInt32, "1.5"} }, `property "x"`},
		"a type that is none":  {func(p *Properties) { (*p)["x"] = Property{"Edm.Time", "1.5"} }, "Edm.Time"},
		"text that is no text": {func(p *Properties) { (*p)["x"] = Property{EDMString, "\xff"} }, `property "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			s.Reset()
			_, err := optimistic.Update(t.Context(), NewEntity[Properties](client, "p", "r"), func(_ context.Context, p *Properties) error { tt.change(p); return nil }, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "update orders/p/r: ") || s.Requests() != 1 {
				t.Errorf("%v after %d requests, want %q after the read", err, s.Requests(), tt.want)
			}
		})
	}
	if _, err := optimistic.Create(t.Context(), NewEntity[Properties](client, "p", "64"), Properties{"b": binary(64 << 10)}, nil); err != nil {
		t.Errorf("a binary of 64 KiB: %v", err)
	}
	// 252 are all right when no lineage is asked for.
	_, err := optimistic.Update(t.Context(), NewEntity[Properties](client, "p", "r"), func(_ context.Context, p *Properties) error { fill(251, "")(p); return nil },
		&optimistic.UpdateOptions{SendOptions: optimistic.SendOptions{NoLineage: true}})
	if err != nil {
		t.Error(err)
	}
	if _, err := optimistic.Read(t.Context(), NewEntity[optest.Counter](client, "", "r"), nil); err == nil || !strings.Contains(err.Error(), "partition key is empty") {
		t.Errorf("an empty partition key: %v", err)
	}
	if _, err := optimistic.Update(t.Context(), NewEntity[Properties](client, "p", "r"), func(context.Context, *Properties) error { return errors.New("not reached") },
		&optimistic.UpdateOptions{Conditions: optimistic.Conditions{LeaseID: "x"}}); err == nil {
		t.Error("a lease id is accepted")
	}
}

func binary(size int) Property {
	return Property{EDMBinary, base64.StdEncoding.EncodeToString(make([]byte, size))}
}

// TestALargeEntityGetsAShorterLineage: the lineage must not make an entity unwritable.
func TestALargeEntityGetsAShorterLineage(t *testing.T) {
	_, client := optest.Row(t, `{"n":1}`)
	target := NewEntity[Properties](client, "p", "r")
	grow := func(_ context.Context, p *Properties) error {
		for i := range 15 {
			(*p)[fmt.Sprint("p", i)] = Property{EDMString, strings.Repeat("x", 32<<10)}
		}
		(*p)["rest"] = Property{EDMString, strings.Repeat("x", 32<<10-300)}
		(*p)["n"] = Property{EDMInt32, (*p)["n"].Value + "1"}
		return nil
	}
	for range 8 {
		if _, err := optimistic.Update(t.Context(), target, grow, nil); err != nil {
			t.Fatal(err)
		}
	}
	full := func(_ context.Context, p *Properties) error {
		(*p)["rest"] = Property{EDMString, strings.Repeat("x", 32<<10-150)}
		return nil
	}
	if _, err := optimistic.Update(t.Context(), target, full, nil); err == nil || !strings.Contains(err.Error(), "no room for a lineage") {
		t.Errorf("no room at all: %v", err)
	}
	if _, state := stored(t, client, "r"); len(state.Lineage.Writes) == 0 || len(state.Lineage.Writes) >= 8 {
		t.Errorf("%d entries in the lineage, want some and not all", len(state.Lineage.Writes))
	}
}

func TestDeletingAnEntityIsConditional(t *testing.T) {
	s, client := optest.Row(t, `{"n":1}`)
	target := NewEntity[optest.Counter](client, "p", "r")
	v, err := optimistic.Read(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := optimistic.Update(t.Context(), target, optest.Increment, nil); err != nil {
		t.Fatal(err)
	}
	s.Reset()
	res, err := optimistic.Delete(t.Context(), target, v.State, nil)
	if conflict, ok := errors.AsType[*optimistic.ConflictError](err); !ok || conflict.Reason != azerr.Changed || conflict.Current == "" {
		t.Fatalf("with an old version: %v", err)
	}
	optest.Requests(t, s, res, 2)
	if _, err := optimistic.Delete(t.Context(), target, optimistic.State{}, nil); err != nil || optest.Number(t, client, "r") != -1 {
		t.Errorf("whatever is there: %v", err)
	}
	if _, err := optimistic.Delete(t.Context(), target, optimistic.State{}, nil); !errors.Is(err, optimistic.ErrNotFound) {
		t.Errorf("again: %v", err)
	}
	if _, err := optimistic.Update(t.Context(), NewEntity[optest.Counter](s.TableService().NewClient("missing"), "p", "r"), optest.Increment, &optimistic.UpdateOptions{Create: true}); !azerr.Has(err, "TableNotFound") {
		t.Errorf("in a table that does not exist: %v", err)
	}
}

// TestAVersionMadeByHandIsReadFirst: compared with nothing, the zero in the value would not be sent.
func TestAVersionMadeByHandIsReadFirst(t *testing.T) {
	s, client := optest.Row(t, `{"n":5}`)
	_, state := stored(t, client, "r")
	s.Reset()
	byHand := &optimistic.Version[optest.Counter]{State: optimistic.State{Exists: true, ETag: state.ETag}}
	res, err := optimistic.Replace(t.Context(), NewEntity[optest.Counter](client, "p", "r"), byHand, optest.Counter{N: 0}, nil)
	if optest.Requests(t, s, res, 2); err != nil || res.BaseETag != state.ETag || optest.Number(t, client, "r") != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	res, err = optimistic.Replace(t.Context(), NewEntity[optest.Counter](client, "p", "r"), byHand, optest.Counter{N: 1}, nil)
	if conflict, ok := errors.AsType[*optimistic.ConflictError](err); !ok || conflict.Op != "replace" || conflict.Base != state.ETag || res.Changed {
		t.Errorf("over a version that is no more: %+v, %v", res, err)
	}
}

// TestKeysNeedNoEscaping: the SDK doubles quotes in some places and not in others.
func TestKeysNeedNoEscaping(t *testing.T) {
	s := aztest.New(nil)
	client := s.Table("orders")
	for _, key := range []string{"o'brien", "''", "a b+c%20d&e=f", "ümläut", "{rowKey}"} {
		target := NewEntity[optest.Counter](client, key, key)
		if _, err := optimistic.Create(t.Context(), target, optest.Counter{N: 1}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := optimistic.Update(t.Context(), target, optest.Increment, nil); err != nil {
			t.Error(err)
		}
		v, err := optimistic.Read(t.Context(), target, nil)
		if err != nil || v.Value.N != 2 {
			t.Errorf("%q: %+v, %v", key, v, err)
			continue
		}
		if _, err := optimistic.Delete(t.Context(), target, v.State, nil); err != nil {
			t.Error(err)
		}
	}
}

func TestADocumentOfAnEntityCostsOneRequest(t *testing.T) {
	s, client := optest.Row(t, `{"n":0,"whole":3.0,"whole@odata.type":"Edm.Double"}`)
	d, err := optimistic.NewDocument[optest.Counter](NewEntity[optest.Counter](client, "p", "r"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		res, err := d.Update(t.Context(), optest.Increment)
		if want := 1 + 1/(i+1); err != nil || res.Requests != want {
			t.Errorf("update %d: %d requests, want %d; %v", i, res.Requests, want, err)
		}
	}
	if got, state := stored(t, client, "r"); s.Requests() != 6 || got["n"].Value != "4" || got["whole"] != (Property{EDMDouble, "3.0"}) || len(state.Lineage.Writes) != 4 {
		t.Errorf("%v, %v after %d requests", got, state.Lineage, s.Requests())
	}
}

// TestWritesFromOutsideAzconcAreConflicts: writers outside azconc leave no lineage, and bind themselves to nothing. Here nothing
// repeats requests, so that their writes are conflicts and not unknown outcomes.
func TestWritesFromOutsideAzconcAreConflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := optest.Row(t, `{"n":1}`)
		meddle := 2
		res, err := optimistic.Update(t.Context(), NewEntity[optest.Counter](client, "p", "r"), func(_ context.Context, c *optest.Counter) error {
			if meddle--; meddle >= 0 {
				_, err := client.UpsertEntity(context.Background(), []byte(`{"PartitionKey":"p","RowKey":"r","n":10}`), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
				if err != nil {
					return err
				}
			}
			c.N++
			return nil
		}, &optimistic.UpdateOptions{SendOptions: optimistic.SendOptions{ConfirmConflicts: optimistic.ConfirmNever}})
		if err != nil || res.Conflicts != 2 || res.Requests != 6 || optest.Number(t, client, "r") != 11 {
			t.Errorf("Update = %+v, %v, n = %d", res, err, optest.Number(t, client, "r"))
		}
	})
}

// TestAPropertyOfAnotherProgramUnderOurNameIsNotReplaced: only a string can be a lineage.
func TestAPropertyOfAnotherProgramUnderOurNameIsNotReplaced(t *testing.T) {
	for _, name := range []string{optimistic.LineageKey, optimistic.OperationsKey} {
		s, client := optest.Row(t, `{"n":1,"`+name+`":7}`)
		target := NewEntity[optest.Counter](client, "p", "r")
		whole := target
		whole.Mode = ReplaceWhole
		for call, err := range map[string]error{
			"read":    optest.ErrorOf(optimistic.Read(t.Context(), target, nil)),
			"update":  optest.ErrorOf(optimistic.Update(t.Context(), target, optest.Increment, nil)),
			"replace": optest.ErrorOf(optimistic.Update(t.Context(), whole, optest.Increment, nil)),
			"transact": optest.ErrorOf(Transact(t.Context(), client, "p", func(ctx context.Context, tx *Tx) error {
				if _, err := tx.Get(ctx, "r", nil); err != nil {
					return err
				}
				return tx.Update("r", optest.Counter{N: 2})
			}, nil)),
		} {
			if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "Edm.Int32") {
				t.Errorf("%s, %s: err = %v", name, call, err)
			}
		}
		for _, r := range s.Log() {
			if aztest.Writes(&r) {
				t.Errorf("%s: sent %v", name, r)
			}
		}
	}
}
