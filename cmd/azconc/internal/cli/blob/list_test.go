package blob

import (
	"strings"
	"testing"
)

// A script that deletes what a list prints, line by line, must not delete another blob.
func TestANameWithALineBreakIsOneLine(t *testing.T) {
	var out strings.Builder
	listResult{Blobs: []item{{Name: "old\nkeep.json"}, {Name: "b"}}}.Text(&out)
	if got, want := out.String(), "\"old\\nkeep.json\"\nb\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
