package root

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/table"
)

// FuzzOperations gives any text as the writes of a transaction. Each that is accepted names a row and a known operation, and
// they are accepted again when they are written as they were read.
func FuzzOperations(f *testing.F) {
	f.Add([]byte(`{"op":"insert","row":"17","entity":{"n":1}}` + "\n" + `{"op":"delete","row":"18","if_match":"W/\"datetime'2026-01-31T12%3A00%3A05Z'\""}`))
	f.Add([]byte(`{"op":"expect","row":"x","if_match":"*"}`))
	f.Add([]byte(`[{"op":"put"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ops, err := table.ParseOperations("stdin", "eu", data)
		if err != nil {
			if !strings.Contains(err.Error(), "stdin") {
				t.Errorf("%q: the error does not name the source: %v", data, err)
			}
			return
		}
		var again []byte
		for _, op := range ops {
			if op.Row == "" || op.Op == "" || op.Entity == nil && op.Op != "delete" && op.Op != "expect" {
				t.Errorf("%q: accepted %+v", data, op)
			}
			line, err := json.Marshal(op)
			if err != nil {
				t.Fatalf("%+v: %v", op, err)
			}
			again = append(append(again, line...), '\n')
		}
		back, err := table.ParseOperations("stdin", "eu", again)
		if err != nil || len(back) != len(ops) {
			t.Errorf("%q is written as %q: %v", data, again, err)
		}
	})
}
