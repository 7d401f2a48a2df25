package optimistic

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/google/go-cmp/cmp"

	"github.com/azconc/azconc/pkg/azurite"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// javascript installs the JavaScript SDK from its lock file, once, into the user's cache: into a new folder, renamed when
// it is complete.
func javascript(t *testing.T) string {
	t.Helper()
	if os.Getenv(azuritetest.SkipVariable) == "1" {
		t.Skip("SKIP: " + azuritetest.SkipVariable + "=1")
	}
	lock, err := os.ReadFile("testdata/javascript/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "azconc", fmt.Sprintf("javascript-%x", sha256.Sum256(lock))[:24])
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "javascript.new-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(fresh)
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := os.ReadFile(filepath.Join("testdata/javascript", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(fresh, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	npm := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	npm.Dir = fresh
	if out, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	if err := os.Rename(fresh, dir); err != nil {
		if _, there := os.Stat(dir); there != nil { // nobody else was faster
			t.Fatal(err)
		}
	}
	return dir
}

// node runs the script with the JavaScript SDK.
func node(t *testing.T, sdk string, account azurite.Account, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", append([]string{"testdata/javascript/entity.mjs"}, args...)...)
	cmd.Env = append(os.Environ(), "SDK="+sdk, "CONNECTION="+account.ConnectionString())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node %v: %v", args, err)
	}
	return out
}

// TestTypesSurviveTheJavaScriptSDK has an entity written by one SDK, changed by azconc and read by the other again, and
// the other way round: every property keeps its type and its value.
func TestTypesSurviveTheJavaScriptSDK(t *testing.T) {
	sdk := javascript(t)
	account := azuritetest.Account(t)
	service, err := aztables.NewServiceClientFromConnectionString(account.ConnectionString(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service.CreateTable(t.Context(), "interop", nil); err != nil {
		t.Fatal(err)
	}
	table := service.NewClient("interop")
	node(t, sdk, account, "write")
	// What that SDK makes of its own entity is the measure. It takes a Double that is a whole number for an Int32 when it
	// reads, so what is stored is looked at below as well.
	want := seen(t, node(t, sdk, account, "read", "js"))
	if want["n"] != "Int32 41" || want["big"] != "Int64 9007199254740993" || len(want) != 9 {
		t.Fatalf("the other SDK wrote %v", want)
	}
	want["n"] = "Int32 42"
	type numbered struct {
		N int `json:"n"`
	}
	if _, err := Update(t.Context(), TableEntity[numbered](table, "p", "js"), func(_ context.Context, v *numbered) error {
		v.N++
		return nil
	}, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, seen(t, node(t, sdk, account, "read", "js"))); diff != "" {
		t.Errorf("written there, changed here, read there (-want +got):\n%s", diff)
	}

	// The same properties, written here whole.
	v, err := Read(t.Context(), TableEntity[Properties](table, "p", "js"), nil)
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
	if _, err := Create(t.Context(), TableEntity[Properties](table, "p", "go"), v.Value, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, seen(t, node(t, sdk, account, "read", "go"))); diff != "" {
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
