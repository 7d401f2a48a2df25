package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// The test binary is also the workers.
func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(workerVariable); ok {
		os.Exit(work(text))
	}
	goleak.VerifyTestMain(m)
}

// short runs a short soak.
func short(t *testing.T, o options) (report, string) {
	t.Helper()
	switch {
	case !supported:
		t.Skip("it needs Linux")
	case os.Getenv(azuritetest.SkipVariable) == "1":
		t.Skip(azuritetest.SkipVariable + "=1")
	}
	t.Parallel()
	o.Dir, o.Drain = t.TempDir(), 2*time.Minute
	if o.Plant != "" {
		o.Drain = 5 * time.Second // a mistake may keep messages for ever
	}
	var out strings.Builder
	r, err := run(t.Context(), o, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	return r, out.String()
}

// TestAShortSoak stops a worker past its leases, kills others, cuts the network and restarts the service, within half a
// minute. scripts/soak does it for longer.
func TestAShortSoak(t *testing.T) {
	r, said := short(t, options{Seed: shortSeed, Minutes: shortMinutes, Workers: 3, Rough: 1})
	if r.Problems != 0 {
		t.Errorf("promises are broken:\n%s", said)
	}
	if r.Requests < 1000 || r.Faults < 50 || r.Restarts == 0 || r.Events[kill] == 0 || r.Events[pause] == 0 || r.Events[sever] == 0 {
		t.Errorf("the weather was too good:\n%s", said)
	}
	for _, v := range r.Verdicts {
		if v.judged == 0 && !rare(v.what) {
			t.Errorf("nothing was judged: %s", v.what)
		}
	}
	t.Log(said)
}

// rare tells which verdicts need more than a short soak.
func rare(what string) bool {
	return what == "memory and goroutines flat" || strings.HasPrefix(what, "no body left") || strings.HasPrefix(what, "no session left")
}

// TestTheSoakConvicts plants mistakes and sees each convicted.
func TestTheSoakConvicts(t *testing.T) {
	r, said := short(t, options{Seed: 1, Minutes: 0.2, Workers: 3, Rough: 3, Plant: plainRetry + "," + noFence + "," + noMarkers + "," + noRelease + "," + noSend})
	for _, what := range []string{"updates applied once", "no write by a stale holder", "one effect for each message with markers, or a reason", "no lease left", "no message lost"} {
		convicted := false
		for _, v := range r.Verdicts {
			convicted = convicted || v.what == what && len(v.problems) > 0
		}
		if !convicted {
			t.Errorf("no violation of %q was noticed", what)
		}
	}
	if t.Failed() {
		t.Log(said)
	}
}

// TestTheSoakConvictsWritesWithoutACondition sees lost updates, in sums and in histories.
func TestTheSoakConvictsWritesWithoutACondition(t *testing.T) {
	r, said := short(t, options{Seed: 2, Minutes: 0.15, Workers: 3, Rough: 1, Plant: noIfMatch})
	for _, what := range []string{"updates applied once", "histories of registers linearizable"} {
		convicted := false
		for _, v := range r.Verdicts {
			convicted = convicted || v.what == what && len(v.problems) > 0
		}
		if !convicted {
			t.Errorf("no violation of %q was noticed\n%s", what, said)
		}
	}
}
