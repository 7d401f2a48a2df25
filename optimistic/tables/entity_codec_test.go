package tables

import (
	"context"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/google/go-cmp/cmp"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// everything is a struct with a field for every type.
type everything struct {
	PartitionKey, RowKey string
	Timestamp            time.Time
	B                    bool             `json:"b"`
	D                    float64          `json:"d"`
	I                    int              `json:"i"`
	ID                   aztables.EDMGUID `json:"id"`
	Long                 int64            `json:"long"`
	Raw                  []byte           `json:"raw"`
	S                    string           `json:"s"`
	Seen                 time.Time        `json:"seen"`
	Tiny                 float64          `json:"tiny"`
	Whole                float64          `json:"whole"`
	Text                 int64            `json:"text,omitempty,string"`
	Later                *time.Time       `json:"later"`
}

func TestAStructReadsAndWritesEveryType(t *testing.T) {
	_, client := optest.Row(t, strings.Replace(everyType, `"nan@odata.type":"Edm.Double","nan":"NaN",`, "", 1))
	target := NewEntity[everything](client, "p", "r")
	v, err := optimistic.Read(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := everything{
		PartitionKey: "p", RowKey: "r", Timestamp: v.LastModified, B: true, D: 2.5, I: -5, ID: "c9da6455-213d-42c9-9a79-3e9149a57833", Long: 9007199254740993,
		Raw: []byte{0, 1, 2, 3}, S: "it's <b>", Seen: time.Date(2024, 2, 29, 12, 0, 0, 123456700, time.UTC), Tiny: 1e-7, Whole: 3,
	}
	if diff := cmp.Diff(want, v.Value); diff != "" || v.LastModified.IsZero() {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	later := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, err := optimistic.Update(t.Context(), target, func(_ context.Context, e *everything) error {
		e.B, e.D, e.I, e.Long, e.Raw, e.S, e.Tiny, e.Whole = false, 4, 6, 1<<62, []byte{9}, "ümläut", 8, 5
		e.Seen, e.Text, e.Later, e.ID = later, 12, &later, "00000000-213d-42c9-9a79-3e9149a57833"
		return nil
	}, nil); err != nil {
		t.Fatal(err)
	}
	got, _ := stored(t, client, "r")
	wanted := Properties{
		"b": {EDMBoolean, "false"}, "d": {EDMDouble, "4.0"}, "i": {EDMInt32, "6"}, "id": {EDMGUID, "00000000-213d-42c9-9a79-3e9149a57833"},
		"long": {EDMInt64, "4611686018427387904"}, "raw": {EDMBinary, "CQ=="}, "s": {EDMString, "ümläut"}, "seen": {EDMDateTime, "2030-01-01T00:00:00Z"},
		"tiny": {EDMDouble, "8.0"}, "whole": {EDMDouble, "5.0"}, "text": {EDMInt64, "12"}, "later": {EDMDateTime, "2030-01-01T00:00:00Z"},
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

func TestAPropertyKeepsItsStoredType(t *testing.T) {
	for before, want := range map[string]Property{
		`{"n":1}`:                                    {EDMInt32, "2"},
		`{"n":1.0,"n@odata.type":"Edm.Double"}`:      {EDMDouble, "2.0"},
		`{"n":999999.0,"n@odata.type":"Edm.Double"}`: {EDMDouble, "1e+06"}, // which the SDK writes as 1000000
		`{"n":"1","n@odata.type":"Edm.Int64"}`:       {EDMInt64, "2"},
		`{}`:                                         {EDMInt32, "1"},
	} {
		_, client := optest.Row(t, before)
		if before == `{}` {
			_, client = optest.Row(t, `{"other":1}`)
		}
		if _, err := optimistic.Update(t.Context(), NewEntity[optest.Counter](client, "p", "r"), optest.Increment, nil); err != nil {
			t.Fatal(err)
		}
		if got, _ := stored(t, client, "r"); got["n"] != want {
			t.Errorf("%s incremented is %v, want %v", before, got["n"], want)
		}
	}
	_, client := optest.Row(t, `{"n":2147483647}`)
	if _, err := optimistic.Update(t.Context(), NewEntity[optest.Counter](client, "p", "r"), optest.Increment, nil); err != nil {
		t.Fatal(err)
	}
	if got, _ := stored(t, client, "r"); got["n"] != (Property{EDMInt64, "2147483648"}) {
		t.Errorf("an Int32 that overflows is %v, want an Int64", got["n"])
	}
}

func TestTypesThatAreNoEntitiesAreRefused(t *testing.T) {
	_, client := optest.Row(t, `{"n":1}`)
	if _, err := optimistic.Update(t.Context(), NewEntity[[]string](client, "p", "r"), func(context.Context, *[]string) error { return nil }, nil); err == nil || !strings.Contains(err.Error(), "[]string cannot be an entity") {
		t.Errorf("a list: %v", err)
	}
	type nested struct {
		Inner struct{ X int } `json:"inner"`
	}
	if _, err := optimistic.Create(t.Context(), NewEntity[nested](client, "p", "new"), nested{}, nil); err == nil || !strings.Contains(err.Error(), `property "inner"`) {
		t.Errorf("a struct in a struct: %v", err)
	}
	type wrong struct {
		N string `json:"n"`
	}
	if _, err := optimistic.Read(t.Context(), NewEntity[wrong](client, "p", "r"), nil); err == nil || !strings.Contains(err.Error(), "does not fit") {
		t.Errorf("a number in a string: %v", err)
	}
	type dated struct {
		At time.Time `json:"at"`
	}
	if _, err := optimistic.Create(t.Context(), NewEntity[dated](client, "p", "new"), dated{}, nil); err == nil || !strings.Contains(err.Error(), "omitzero") {
		t.Errorf("a time that is not set: %v", err)
	}
}

// TestANilPointerIsNoEntity: it was written as an entity without properties, or was a panic.
func TestANilPointerIsNoEntity(t *testing.T) {
	s, client := optest.Row(t, `{"n":1}`)
	var none *optest.Counter
	ctx, target := t.Context(), NewEntity[*optest.Counter](client, "p", "r")
	tx := func(change func(context.Context, *Tx) error) error {
		return optest.ErrorOf(Transact(ctx, client, "p", change, nil))
	}
	for name, err := range map[string]error{
		"create":     optest.ErrorOf(optimistic.Create(ctx, target, none, nil)),
		"upsert":     optest.ErrorOf(Upsert(ctx, target, none, nil)),
		"update":     optest.ErrorOf(optimistic.Update(ctx, target, func(_ context.Context, v **optest.Counter) error { *v = nil; return nil }, nil)),
		"properties": optest.ErrorOf(optimistic.Create(ctx, NewEntity[*Properties](client, "p", "new"), nil, nil)),
		"put":        tx(func(_ context.Context, tx *Tx) error { return tx.Put("r", none) }),
		"get":        tx(func(ctx context.Context, tx *Tx) error { return optest.ErrorOf(tx.Get(ctx, "r", none)) }),
		"get a map":  tx(func(ctx context.Context, tx *Tx) error { return optest.ErrorOf(tx.Get(ctx, "r", (*Properties)(nil))) }),
		"no pointer": tx(func(ctx context.Context, tx *Tx) error { return optest.ErrorOf(tx.Get(ctx, "r", optest.Counter{})) }),
	} {
		if err == nil || !strings.Contains(err.Error(), "give a") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, r := range s.Log() {
		if aztest.Writes(&r) {
			t.Errorf("sent %v", r)
		}
	}
}

// TestTextThatIsNotValidIsRefused: the JSON encoder replaced its bytes in silence.
func TestTextThatIsNotValidIsRefused(t *testing.T) {
	type note struct {
		Text string `json:"text"`
	}
	s, client := optest.Row(t, `{"n":1}`)
	target := NewEntity[note](client, "p", "new")
	_, err := optimistic.Create(t.Context(), target, note{"a\xff"}, nil)
	bad := "a\xff"
	_, pointer := optimistic.Create(t.Context(), NewEntity[map[string]any](client, "p", "new"), map[string]any{"text": &bad}, nil)
	for _, err := range []error{err, pointer} {
		if err == nil || !strings.Contains(err.Error(), `property "text"`) || s.Requests() > 0 {
			t.Errorf("%v after %v", err, s.Log())
		}
	}
	const valid = "\ufffd \\ufffd \\\\ufffd"
	if _, err := optimistic.Create(t.Context(), target, note{valid}, nil); err != nil {
		t.Error(err)
	}
	if v, err := optimistic.Read(t.Context(), target, nil); err != nil || v.Value.Text != valid {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestCopiesShareNoMemory: a change that fails must not have touched what the document remembers.
func TestCopiesShareNoMemory(t *testing.T) {
	var e Entity[map[string]any]
	value := map[string]any{"raw": []byte{1}, "n": int32(1)}
	clone, err := entityTarget[map[string]any]{e}.Clone(value)
	if err != nil || !reflect.DeepEqual(value, clone) {
		t.Fatal(clone, err)
	}
	clone["raw"].([]byte)[0], clone["n"] = 2, int32(2)
	if !reflect.DeepEqual(value, map[string]any{"raw": []byte{1}, "n": int32(1)}) {
		t.Error("the clone is the same map")
	}
	text, raw := "a", aztables.EDMBinary{1}
	if clone, err = (entityTarget[map[string]any]{e}).Clone(map[string]any{"text": &text, "raw": raw}); err != nil {
		t.Fatal(err)
	}
	text, raw[0] = "b", 2
	if want := (map[string]any{"text": "a", "raw": []byte{1}}); !reflect.DeepEqual(clone, want) {
		t.Errorf("the clone is %v, want %v", clone, want)
	}
	var p Entity[Properties]
	properties := Properties{"n": {EDMInt32, "1"}}
	copied, _ := entityTarget[Properties]{p}.Clone(properties)
	delete(copied, "n")
	if !maps.Equal(properties, Properties{"n": {EDMInt32, "1"}}) {
		t.Error("the clone is the same map")
	}
}
