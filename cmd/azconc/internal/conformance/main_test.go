package conformance

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(azuritetest.StopAfter(m)) }
