//go:build !race

package change

import (
	"runtime"
	"strings"
	"testing"
)

// TestAnEditAtAPathTakesLittleMoreThanTheNewText is not for the race detector, which takes memory of its own.
func TestAnEditAtAPathTakesLittleMoreThanTheNewText(t *testing.T) {
	text := []byte(`{"n":1,"l":[` + strings.Repeat(`{"a":1,"b":[2]},`, 1<<16) + `{}]}`)
	for _, expr := range []string{".n += 1", ".l[70] = 1", ".l += [2]", "del(.l[7])"} {
		jq, err := newJQChange(expr, nil)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = jq.Apply(t.Context(), BaseContent{Exists: true, Data: text})
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err != nil || took > uint64(len(text))*5/4 {
			t.Errorf("%s took %d bytes for a text of %d: %v", expr, took, len(text), err)
		}
	}
}
