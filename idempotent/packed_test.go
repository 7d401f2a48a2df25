//go:build !race

// Megabytes are compressed in one goroutine, which takes ten times as long with the race detector: scripts/test runs this file without it.

package idempotent

import (
	"bytes"
	"testing"

	"github.com/azconc/azconc/idempotent/internal/format"
)

// Bodies that compress well, a little, just so, and not at all.
func TestWhatIsCompressedIsShorterAndRestored(t *testing.T) {
	noise := noise(1 << 20)
	for _, random := range []int{0, 1 << 18, 1<<19 - 500, 1 << 19, 1<<19 + 500, 1<<20 - 5000, 1<<20 - 100, 1 << 20} {
		body := append(bytes.Clone(noise[:random]), make([]byte, 1<<20-random)...)
		zipped, err := format.Compress(body)
		if err != nil || (zipped == nil) != (random > 1<<20-1000) || len(zipped) >= len(body) {
			t.Fatalf("%d random bytes: %d of %d, %v", random, len(zipped), len(body), err)
		}
		if zipped == nil {
			continue
		}
		p := format.Describe(body)
		if p.Gzip = zipped; err == nil {
			var got []byte
			if got, err = p.Inflate(); err != nil || !bytes.Equal(got, body) {
				t.Errorf("%d random bytes: %d restored, %v", random, len(got), err)
			}
		}
	}
	for _, small := range [][]byte{nil, []byte("a"), bytes.Repeat([]byte("a"), 100)} {
		if zipped, err := format.Compress(small); err != nil || (zipped == nil) != (len(small) < 100) {
			t.Errorf("%d bytes: %d, %v", len(small), len(zipped), err)
		}
	}
}
