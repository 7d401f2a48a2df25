package explore_test

import (
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1) // goroutines of one client that race do so in the same way every time, nearly
	goleak.VerifyTestMain(m)
}
