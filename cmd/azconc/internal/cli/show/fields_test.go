package show

import (
	"strings"
	"testing"
)

// TestAFieldIsOneLine: a client that may acquire a lock chooses its owner, and could otherwise print fields that are not true.
func TestAFieldIsOneLine(t *testing.T) {
	for _, owner := range []string{"a\nheld  no", "a\r\nheld  no", "a\rheld  no", "a\vheld  no", "a\u0085held  no", "a\u2028held  no"} {
		var b strings.Builder
		Fields(&b, "held", "yes", "owner", owner, "fence", "")
		if want := "held   yes\nowner  a held  no\n"; b.String() != want {
			t.Errorf("Fields with the owner %q: %q, want %q", owner, b.String(), want)
		}
	}
}
