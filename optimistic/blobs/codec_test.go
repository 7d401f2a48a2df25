package blobs

import (
	"strings"
	"testing"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
)

// TestWhatFollowsAValueIsNotDropped: json.Decoder.More is false before } and ], so an update took {"n":0}} for a document, and
// wrote it back without what followed.
func TestWhatFollowsAValueIsNotDropped(t *testing.T) {
	for _, content := range []string{`{"n":0}}`, `{"n":0}}…`, `{"n":0}] {"precious":true}`, `{"n":0}{"n":1}`, `{"n":0},`, `{"n":0}` + "\x00", `{"n":0} 7`} {
		s, client := optest.Quiet(t, content)
		res, err := optimistic.Update(t.Context(), NewJSON[optest.Counter](client), optest.Increment, nil)
		if err == nil || !strings.Contains(err.Error(), "more data after the value, at offset 7") {
			t.Errorf("%q: err = %v", content, err)
		}
		optest.Requests(t, s, res, 1)
		if got := optest.Get(t, client); got != content {
			t.Errorf("%q became %q", content, got)
		}
	}
}

func TestWhiteSpaceMayFollowAValue(t *testing.T) {
	_, client := optest.Quiet(t, "{\"n\":0} \r\n\t")
	if _, err := optimistic.Update(t.Context(), NewJSON[optest.Counter](client), optest.Increment, nil); err != nil {
		t.Error(err)
	}
}
