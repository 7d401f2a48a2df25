package aztest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func TestSleepIsForBubbles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		bubble.Sleep(10 * 365 * 24 * time.Hour)
		if passed := time.Since(began); passed != 10*365*24*time.Hour {
			t.Errorf("%v have passed", passed)
		}
	})
	defer func() {
		if recover() == nil {
			t.Error("it sleeps outside of one")
		}
	}()
	bubble.Sleep(0)
}
