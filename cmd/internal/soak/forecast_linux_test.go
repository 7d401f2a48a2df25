package soak

import (
	"slices"
	"testing"
	"time"
)

const (
	shortSeed   = 195
	shortLength = 21 * time.Second
)

func TestASeedIsAForecast(t *testing.T) {
	first := forecast(7, 10*time.Minute)
	if !slices.Equal(first, forecast(7, 10*time.Minute)) {
		t.Error("the same seed gave two forecasts")
	}
	if slices.Equal(first, forecast(8, 10*time.Minute)) {
		t.Error("two seeds gave one forecast")
	}
	for seed := range uint64(50) {
		count := map[string]int{}
		past := 0
		for _, e := range forecast(seed, 10*time.Minute) {
			count[e.what]++
			if e.what == pause && e.lasts > leaseTime {
				past++
			}
			if e.worker == 0 && (e.what == kill || e.what == replace) {
				t.Fatalf("seed %d: %v ends the worker that lives through all of it", seed, e)
			}
			if e.at+e.lasts > 10*time.Minute {
				t.Fatalf("seed %d: %v lasts too long", seed, e)
			}
		}
		if count[kill]+count[pause] < 30 || past < 10 || count[restart] < 3 || count[sever] < 5 || count[replace] < 3 {
			t.Errorf("seed %d: %v, %d stops past a lease", seed, count, past)
		}
	}
}

func TestTheShortForecastHasEverything(t *testing.T) {
	has := map[string]bool{}
	for _, e := range forecast(shortSeed, shortLength) {
		has[e.what] = true
		if e.what == pause && e.lasts > leaseTime {
			has["past its leases"] = true
		}
		t.Log(e)
	}
	for _, what := range []string{kill, pause, sever, restart, "past its leases"} {
		if !has[what] {
			t.Errorf("no %s: choose another seed", what)
		}
	}
}
