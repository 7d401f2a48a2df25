//go:build !race

// Pure functions, for which the race detector has nothing to do but take time.

package azerr

import (
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAccountKeysAreFoundAsThePatternDoes holds the search against the pattern that says what an account key is.
func TestAccountKeysAreFoundAsThePatternDoes(t *testing.T) {
	key := regexp.MustCompile(`(?i)((?:[a-z0-9+/]|%2[bf]){86}(?:==|%3d%3d))`)
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "Z", "9", "+", "/", "%2b", "%2F", "%2", "b", "%", "=", "==", "%3d%3D", "%3d", " ", "é"}
	matched := 0
	for range 3000 {
		var b strings.Builder
		for size := 130 + random.IntN(120); b.Len() < size; {
			switch random.IntN(30) {
			case 0:
				b.WriteString(pieces[random.IntN(len(pieces))])
			default:
				b.WriteString(pieces[random.IntN(7)])
			}
		}
		b.WriteString([]string{"==", "%3D%3d", "="}[random.IntN(3)])
		s := b.String()
		for _, m := range key.FindAllStringIndex(s, -1) {
			matched++
			if !slices.ContainsFunc(keySpans(s), func(got span) bool { return got.start <= m[0] && got.end >= m[1] }) {
				t.Fatalf("%q: found %v, want %v", s, keySpans(s), m)
			}
		}
		for _, got := range keySpans(s) {
			if !key.MatchString(s[got.start:got.end]) {
				t.Fatalf("%q: %q is no key", s, s[got.start:got.end])
			}
		}
	}
	if matched < 100 {
		t.Errorf("%d keys are few", matched)
	}
}

// TestTheTimeOfRedactingIsLinear, because the output of a handler can be long.
func TestTheTimeOfRedactingIsLinear(t *testing.T) {
	for _, filler := range []string{"x", " ", "%2b", "=", "sig", "a=b&"} {
		took := func(size int) time.Duration {
			text := strings.Repeat(filler, size/len(filler))
			best := time.Duration(math.MaxInt64)
			for range 3 {
				began := time.Now()
				if Redact(text) != text {
					t.Errorf("%q: there is nothing to redact", filler)
				}
				best = min(best, time.Since(began))
			}
			return best
		}
		// The ratio is 16 if the time is linear, 256 if it is quadratic. A busy machine can spoil one comparison, not ten.
		var small, large time.Duration
		for range 10 {
			if small, large = took(32<<10), took(512<<10); large <= 80*small {
				break
			}
		}
		if large > 80*small {
			t.Errorf("%q: 512 KiB took %v, 32 KiB %v", filler, large, small)
		}
	}
}
