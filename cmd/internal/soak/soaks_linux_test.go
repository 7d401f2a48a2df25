package soak

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
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

// TestASoak is scripts/soak, which names the seed and the minutes.
func TestASoak(t *testing.T) {
	given := os.Getenv("AZCONC_SOAK")
	if given == "" {
		t.Skip("scripts/soak runs it for minutes; TestAShortSoak is a short one")
	}
	o := options{Drain: 4 * time.Minute, Patience: time.Minute}
	var minutes float64
	if _, err := fmt.Sscan(given, &o.Seed, &minutes); err != nil || minutes <= 0 {
		t.Fatalf("%q: --seed is a number, and --minutes a positive one", given)
	}
	o.Length = time.Duration(minutes * float64(time.Minute))
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := run(ctx, o, os.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	if s.problems() > 0 {
		t.Error("promises are broken")
	}
}

// short runs a short soak.
func short(t *testing.T, o options) (*soak, string) {
	t.Helper()
	if os.Getenv(azuritetest.SkipVariable) == "1" {
		t.Skip(azuritetest.SkipVariable + "=1")
	}
	t.Setenv("TMPDIR", t.TempDir())
	o.Seed, o.Drain, o.Patience = shortSeed, 2*time.Minute, time.Minute
	if o.Plant != "" {
		o.Drain = 5 * time.Second // a mistake may keep messages for ever
	}
	var out strings.Builder
	s, err := run(t.Context(), o, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	return s, out.String()
}

// TestAShortSoak stops a worker past its leases, kills others, cuts the network and restarts the service, within half a
// minute. scripts/soak does it for longer.
func TestAShortSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it takes a minute, and this is a short run")
	}
	for length := shortLength; ; length *= 2 { // a busy machine needs more time for the same work
		s, said := short(t, options{Length: length})
		if s.problems() != 0 {
			t.Fatalf("promises are broken:\n%s", said)
		}
		missing := s.missing()
		if t.Log(said); missing == "" {
			return
		}
		if length > 90*time.Second {
			t.Fatal(missing)
		}
	}
}

// missing says what has not happened, or was not judged; "" for nothing.
func (s *soak) missing() string {
	requests, events := s.requests(), s.events()
	if requests["no fault"] < 500 || len(requests) < 6 || events[restart] == 0 || events[kill] == 0 || events[pause] == 0 || events[sever] == 0 {
		return "the weather was too good"
	}
	for _, v := range s.verdicts {
		if v.judged == 0 && v.what != "nothing left after its life in onces" { // the lock of a key stays only if its work has failed
			return "nothing was judged: " + v.what
		}
	}
	return ""
}

// convicts tells whether a verdict is that a promise was broken.
func (s *soak) convicts(what string) bool {
	return slices.ContainsFunc(s.verdicts, func(v *verdict) bool { return v.what == what && len(v.problems) > 0 })
}
