package pessimistic

import (
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/fence"
)

// FuzzLockRecord reads any metadata as those of a lock. They are read without a panic, and count as a whole record only with
// the seal of their own fence and nonce. What a holder writes over them is read again as it was, without the lease id,
// and leaves the entries of others alone.
func FuzzLockRecord(f *testing.F) {
	f.Add("web-1", "5f0c8c5e-6d3b-4d5b-9a53-7f3f5b1c2d3e", "1700000000000", "2026-01-31T12:00:05Z", "30", "0011223344556677", int64(17), int32(30))
	f.Add("ü\n%", "", "-1", "yesterday", "-1", "", int64(0), int32(-1))
	f.Fuzz(func(t *testing.T, owner, nonce, token, since, duration, seal string, next int64, seconds int32) {
		metadata := map[string]string{
			locks.KeyOwner: owner, keyNonce: nonce, fence.Key: token, locks.KeySince: since, keyDuration: duration, keySeal: seal, keyOrder: seal, "others": "kept",
		}
		r := recordIn(metadata)
		if r.sealed && seal != r.seal() {
			t.Errorf("%v counts as sealed", metadata)
		}
		if r.fence < 0 {
			t.Errorf("%q is the fence %d", token, r.fence)
		}
		if next < 0 || seconds < -1 || nonce == "" {
			return
		}
		written := record{
			lock: true, sealed: true, owner: owner, nonce: nonce, fence: fence.Token(next),
			since: time.Unix(next%(1<<33), 0).UTC(), duration: time.Duration(seconds) * time.Second,
			order: order{turn: next % (1 << 53), next: 3, issued: 4, length: time.Second},
		}
		if seconds < 0 {
			written.duration = Infinite
		}
		over := map[string]string{}
		for name, value := range written.over(metadata) {
			over[name] = *value
			if name != keyNonce && strings.ContainsFunc(*value, func(c rune) bool { return c < ' ' || c > '~' }) {
				t.Errorf("%s: %q cannot be sent in a header", name, *value)
			}
		}
		if got := recordIn(over); got != written {
			t.Errorf("%+v is read again as %+v", written, got)
		}
		if over["others"] != "kept" || len(over) != len(metadata) {
			t.Errorf("the record over %v is %v", metadata, over)
		}
	})
}
