package root

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestACollectionCountsTheTicketsOfLocksThatAreGone: JSON had the number, and the summary for people had not.
func TestACollectionCountsTheTicketsOfLocksThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		s.BlockBlob("jobs", "a") // creates the container
		if _, err := s.Container("jobs").NewAppendBlobClient("gone.azconc-waiters").Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		bubble.Sleep(time.Hour)
		for _, tt := range []struct{ args, want string }{
			{"lock gc jobs --unused 1m --dry-run", ", 1 ticket blob without a lock would be deleted"},
			{"lock gc jobs --unused 1m", ", 1 ticket blob without a lock deleted"},
			{"lock gc jobs --unused 1m", "0 locks seen, 0 deleted, 0 held, 0 used since, 0 not made by azconc as a lock"},
		} {
			if r := runOn(t.Context(), s, nil, nil, strings.Fields(tt.args)...); r.code != 0 || !strings.HasSuffix(r.stderr, tt.want+"\n") {
				t.Errorf("%s: %d %q", tt.args, r.code, r.stderr)
			}
		}
	})
}
