package tables

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/google/go-cmp/cmp"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// entityScript writes or reads one entity with the JavaScript SDK.
const entityScript = "testdata/javascript/entity.mjs"

// TestTypesSurviveTheJavaScriptSDK has an entity written by one SDK, changed by azconc and read by the other again, and
// the other way round: every property keeps its type and its value.
func TestTypesSurviveTheJavaScriptSDK(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it starts Node.js, and this is a short run")
	}
	account := azuritetest.Account(t)
	service, err := aztables.NewServiceClientFromConnectionString(account.ConnectionString(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service.CreateTable(t.Context(), "interop", nil); err != nil {
		t.Fatal(err)
	}
	table := service.NewClient("interop")
	azuritetest.JavaScript(t, account.ConnectionString(), entityScript, "write")
	// What that SDK makes of its own entity is the measure. It takes a Double that is a whole number for an Int32 when it
	// reads, so what is stored is looked at below as well.
	want := seen(t, azuritetest.JavaScript(t, account.ConnectionString(), entityScript, "read", "js"))
	if want["n"] != "Int32 41" || want["big"] != "Int64 9007199254740993" || len(want) != 9 {
		t.Fatalf("the other SDK wrote %v", want)
	}
	want["n"] = "Int32 42"
	type numbered struct {
		N int `json:"n"`
	}
	if _, err := optimistic.Update(t.Context(), NewEntity[numbered](table, "p", "js"), func(_ context.Context, v *numbered) error {
		v.N++
		return nil
	}, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, seen(t, azuritetest.JavaScript(t, account.ConnectionString(), entityScript, "read", "js"))); diff != "" {
		t.Errorf("written there, changed here, read there (-want +got):\n%s", diff)
	}

	// The same properties, written here whole.
	v, err := optimistic.Read(t.Context(), NewEntity[Properties](table, "p", "js"), nil)
	if err != nil {
		t.Fatal(err)
	}
	stored := Properties{
		"n": {EDMInt32, "42"}, "text": {EDMString, "grüße"}, "flag": {EDMBoolean, "true"}, "half": {EDMDouble, "0.5"}, "whole": {EDMDouble, "3.0"},
		"big": {EDMInt64, "9007199254740993"}, "due": {EDMDateTime, "2026-01-31T12:00:05.125Z"},
		"id": {EDMGUID, "a455c695-df98-5678-aaaa-81d3367e5a34"}, "raw": {EDMBinary, "AAH+/w=="},
	}
	if diff := cmp.Diff(stored, v.Value); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if _, err := optimistic.Create(t.Context(), NewEntity[Properties](table, "p", "go"), v.Value, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, seen(t, azuritetest.JavaScript(t, account.ConnectionString(), entityScript, "read", "go"))); diff != "" {
		t.Errorf("written here, read there (-want +got):\n%s", diff)
	}
}

func seen(t *testing.T, out []byte) map[string]string {
	t.Helper()
	var got map[string]string
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return got
}
