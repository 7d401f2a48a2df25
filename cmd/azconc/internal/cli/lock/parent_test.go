package lock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// The parent that ended while azconc started was never missed.
func TestAParentThatEndedDuringTheStartIsMissed(t *testing.T) {
	present := parent
	defer func() { parent = present }()
	for _, missing := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			if parent = present; missing {
				parent = -1
			}
			ended := false
			stop := WithParent(true).Watch(func(error) { ended = true })
			bubble.Sleep(2 * time.Second)
			stop()
			if ended != missing {
				t.Errorf("ended: %t, want %t", ended, missing)
			}
		})
	}
}
