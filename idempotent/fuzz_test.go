package idempotent

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
)

// FuzzMarker stores a marker as a claim does, and reads it as a consumer does: it comes back as it was.
func FuzzMarker(f *testing.F) {
	f.Add("order-17", "d8f1", markers.Owned, int64(1_700_000_000), int64(0), []byte(nil), 0, false)
	f.Add("it's / a # key?\x7f", "", markers.Done, int64(0), int64(1_700_000_000), []byte("\x00paid"), 1, true)
	f.Fuzz(func(t *testing.T, key, owner, state string, expires, until int64, result []byte, attempts int, buried bool) {
		for _, s := range []string{key, owner, state} {
			if !utf8.ValidString(s) {
				return // the service takes no other text
			}
		}
		if len(owner) > 64 || len(state) > 64 || len(result) > 1<<10 || attempts != int(int32(attempts)) {
			return
		}
		at := func(s int64) time.Time {
			if s == 0 {
				return time.Time{}
			}
			return time.Unix((s%(1<<33)+(1<<33))%(1<<33), 0).UTC()
		}
		m := markers.Marker{Owner: owner, State: state, Expires: at(expires), Until: at(until), Buried: buried, Counts: format.Counts{Attempts: attempts}}
		if len(result) > 0 {
			m.Result = result
		}
		if m.Expires.IsZero() {
			m.Expires = time.Unix(1_700_000_000, 0).UTC() // every marker has one
		}
		partition, row := markers.PartitionOf("orders", key), markers.RowOf(key)
		text, err := m.Encode(partition, row)
		if err != nil {
			t.Fatal(err)
		}
		table := aztest.New(nil).Table("markers")
		if _, err := table.AddEntity(context.Background(), text, nil); err != nil {
			t.Fatalf("%q in %s/%s is refused: %v", text, partition, row, err)
		}
		k, err := NewMarkers(table, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, found, err := markers.Find(context.Background(), k.table.Entity(partition, row), k.table.Reading())
		if err != nil || !found || !reflect.DeepEqual(got, m) {
			t.Errorf("%s is read as %+v, %v, want %+v", text, got, err, m)
		}
	})
}

// FuzzForeignMarker stores any entity where a marker is expected: reading it is an error or a marker, never a panic, and
// never a marker that was not there.
func FuzzForeignMarker(f *testing.F) {
	f.Add([]byte(`{"owner":"x","state":"done","expires":"2026-01-01T00:00:00Z","expires@odata.type":"Edm.DateTime"}`))
	f.Add([]byte(`{"owner":5,"state":true,"expires":"soon","result":"AA=="}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var p tables.Properties
		if json.Unmarshal(data, &p) != nil {
			return
		}
		table := aztest.New(nil).Table("markers")
		target := tables.NewEntity[tables.Properties](table, "orders", "k-x")
		if _, err := optimistic.Create(context.Background(), target, p, nil); err != nil {
			return // the service refuses it
		}
		k, err := NewMarkers(table, nil)
		if err != nil {
			t.Fatal(err)
		}
		m, found, err := markers.Find(context.Background(), k.table.Entity("orders", "k-x"), k.table.Reading())
		if err == nil && !found {
			t.Errorf("%s is stored, and not found", data)
		}
		if err == nil && m.State != p["state"].Value {
			t.Errorf("%s is in state %q", data, m.State)
		}
	})
}
