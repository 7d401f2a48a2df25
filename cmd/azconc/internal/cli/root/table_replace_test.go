package root

import (
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

// TestAWriteOfAnEntityCarriesOnWhatIsRemembered, and reads the entity for that.
func TestAWriteOfAnEntityCarriesOnWhatIsRemembered(t *testing.T) {
	for _, verb := range []string{"replace", "merge"} {
		t.Run(verb, func(t *testing.T) {
			s := tableWith(t, everyType())
			run := func(args ...string) map[string]any {
				t.Helper()
				return runOn(t.Context(), s, nil, nil, append([]string{"table", "-o", "json"}, args...)...).json(t)
			}
			first := run("update", "jobs/eu/17", "--set", "l=5", "--op-id", "deploy-1")
			etag, _ := first["etag"].(string)
			if etag == "" {
				t.Fatalf("update: %v", first)
			}
			for _, set := range []string{"l=6", "b=false"} {
				v := run(verb, "jobs/eu/17", "--if-match", etag, "--set", set)
				if v["outcome"] != verb[:len(verb)-1]+"ed" && v["outcome"] != verb+"d" || v["requests"] != 2.0 {
					t.Fatalf("%s --set %s: %v, want 2 requests: read and written", verb, set, v)
				}
				etag, _ = v["etag"].(string)
			}
			if v := run("update", "jobs/eu/17", "--set", "l=7", "--op-id", "deploy-1"); v["outcome"] != "already_applied" {
				t.Errorf("the operation after a %s: %v", verb, v)
			}
			s.Reset()
			if r := runOn(t.Context(), s, nil, nil, "table", verb, "jobs/eu/17", "--if-match", first["etag"].(string), "--set", "b=true"); r.code != fail.ExitConflict {
				t.Errorf("a stale version: %+v", r)
			}
			if got := s.Requests(); got != 1 {
				t.Errorf("%d requests to find a version stale, want 1", got)
			}
			if v := run(verb, "jobs/eu/17", "--if-match", "*", "--set", "b=true"); v["requests"] != 2.0 {
				t.Errorf("%s of whatever is there: %v, want 2 requests", verb, v)
			}
			if v := run("update", "jobs/eu/17", "--set", "l=7", "--op-id", "deploy-1"); v["outcome"] != "already_applied" {
				t.Errorf("the operation after a %s of whatever is there: %v", verb, v)
			}
		})
	}
}

// TestAWriteOfAMissingEntityIsNotFound, or a conflict if a version is asked for, as it is for every other resource.
func TestAWriteOfAMissingEntityIsNotFound(t *testing.T) {
	s := tableWith(t, everyType())
	for _, verb := range []string{"replace", "merge"} {
		for etag, want := range map[string]int{"*": fail.ExitNotFound, `W/"datetime'2020-01-01T00%3A00%3A00.0000000Z'"`: fail.ExitConflict} {
			s.Reset()
			if r := runOn(t.Context(), s, nil, nil, "table", verb, "jobs/eu/none", "--if-match", etag, "--set", "b=true"); r.code != want {
				t.Errorf("%s --if-match %s: %+v, want exit %d", verb, etag, r, want)
			}
			if got := s.Requests(); got != 1 {
				t.Errorf("%s --if-match %s: %d requests, want 1", verb, etag, got)
			}
		}
	}
}
