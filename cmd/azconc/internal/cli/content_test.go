package cli

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// Whatever the size is said to be, all content is read, and content of that size into one buffer.
func TestContentIsReadWhateverItsSizeIsSaidToBe(t *testing.T) {
	content := bytes.Repeat([]byte("abc"), 5000)
	for _, size := range []int64{-1, 0, 1, int64(len(content)) - 1, int64(len(content)), int64(len(content)) + 1} {
		for name, r := range map[string]io.Reader{"whole": bytes.NewReader(content), "piecemeal": iotest.HalfReader(bytes.NewReader(content)), "end with data": iotest.DataErrReader(bytes.NewReader(content))} {
			got, err := ReadSized(r, size)
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s, said to be %d: %d bytes, %v", name, size, len(got), err)
			}
			if size == int64(len(content)) && cap(got) > len(content)+bytes.MinRead {
				t.Errorf("%s: a buffer of %d bytes", name, cap(got))
			}
		}
	}
	if got, err := ReadSized(bytes.NewReader(nil), 0); err != nil || got == nil || len(got) > 0 {
		t.Errorf("nothing: %v, %v", got, err)
	}
	broken := io.MultiReader(bytes.NewReader(content), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := ReadSized(broken, int64(len(content))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("broken at its end: %v", err)
	}
}
