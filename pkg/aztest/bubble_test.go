package bubble

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSleepIsForBubbles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		Sleep(10 * 365 * 24 * time.Hour)
		if passed := time.Since(began); passed != 10*365*24*time.Hour {
			t.Errorf("%v have passed", passed)
		}
	})
	defer func() {
		if recover() == nil {
			t.Error("it sleeps outside of one")
		}
	}()
	Sleep(0)
}
