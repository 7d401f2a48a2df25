package appends

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestRecordsEndOnlyWithTheirReader: a reader that fails with an error around io.EOF has not ended.
func TestRecordsEndOnlyWithTheirReader(t *testing.T) {
	whole := string(frame("wabc", []byte("one"))) + string(frame("wabd", []byte("two")))
	first := len(frame("wabc", []byte("one")))
	failure := fmt.Errorf("read tcp: %w", io.EOF)
	for cut := range len(whole) + 1 {
		n, last := 0, error(nil)
		for r, err := range Records(io.MultiReader(strings.NewReader(whole[:cut]), iotest.ErrReader(failure))) {
			if last = err; err == nil && len(r.Data) == 3 {
				n++
			}
		}
		if !errors.Is(last, failure) || n > cut/first {
			t.Errorf("after %d of %d bytes: %d records, then %v", cut, len(whole), n, last)
		}
	}
}
