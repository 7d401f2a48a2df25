package blobs

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// net/http reads from a body after it has returned the error of the request; the memory is its owner's again by then.
func TestABodyIsNotReadAfterItsRequest(t *testing.T) {
	data := []byte("content")
	b := newRequestBody(bytes.NewReader(data))
	if n, err := b.Read(make([]byte, 3)); n != 3 || err != nil {
		t.Fatalf("Read = %d, %v", n, err)
	}
	b.End()
	data[3] = 'X'
	rest, err := io.ReadAll(b)
	if len(rest) > 0 || !errors.Is(err, errBodyEnded) {
		t.Errorf("after its request the body gave %q, %v", rest, err)
	}
}
