package root

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/aztest"
)

const someLease, otherLease = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"

// TestLeaseVerbsSurviveALostResponse sends every lease operation over a network that loses its first response.
func TestLeaseVerbsSurviveALostResponse(t *testing.T) {
	for _, on := range []string{"blob", "container"} {
		name := map[string]string{"blob": "jobs/a", "container": "jobs"}[on]
		for _, step := range []struct {
			op     string
			before [][]string
			args   []string
			state  string
		}{
			{"Acquire", nil, []string{"acquire", name}, "leased"},
			{"Renew", [][]string{{"acquire", name, "--lease-id", someLease}}, []string{"renew", name, "--lease-id", someLease}, "leased"},
			{"Change", [][]string{{"acquire", name, "--lease-id", someLease}}, []string{"change", name, "--lease-id", someLease, "--to", otherLease}, "leased"},
			{"Release", [][]string{{"acquire", name, "--lease-id", someLease}}, []string{"release", name, "--lease-id", someLease}, "available"},
			{"Break", [][]string{{"acquire", name, "--lease-id", someLease}}, []string{"break", name, "--now"}, "broken"},
		} {
			t.Run(on+" "+step.op, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := aztest.New(nil)
					s.BlockBlob("jobs", "a")
					if r := runOn(t.Context(), s, nil, nil, "blob", "put", "jobs/a", "--file", "/dev/null"); r.code != 0 {
						t.Fatal(r)
					}
					for _, args := range step.before {
						if r := runOn(t.Context(), s, nil, nil, append([]string{on, "lease"}, args...)...); r.code != 0 {
							t.Fatal(r)
						}
					}
					operation := map[string]string{"blob": step.op + " Blob Lease", "container": step.op + " Container Lease"}[on]
					s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op(operation), Count: 1})
					r := runOn(t.Context(), s, nil, nil, append(append([]string{on, "lease"}, step.args...), "-o", "json")...)
					if v := r.json(t); r.code != 0 || v["ambiguous"] != 1.0 {
						t.Errorf("exit %d, %v\n%v", r.code, v, s.Log())
					}
					if v := runOn(t.Context(), s, nil, nil, on, "lease", "show", name, "-o", "json").json(t); v["state"] != step.state {
						t.Errorf("the lease is %v, want %s", v["state"], step.state)
					}
				})
			})
		}
	}
}

func TestAcquireWaitsForTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		s.BlockBlob("jobs", "a")
		for _, args := range [][]string{
			{"blob", "put", "jobs/a", "--file", "/dev/null"},
			{"blob", "lease", "acquire", "jobs/a", "--duration", "15s"},
		} {
			if r := runOn(t.Context(), s, nil, nil, args...); r.code != 0 {
				t.Fatal(r)
			}
		}
		began := time.Now()
		if r := runOn(t.Context(), s, nil, nil, "blob", "lease", "acquire", "jobs/a", "--wait", "10s"); r.code != fail.ExitHeld {
			t.Errorf("%+v, want it still held after 10 s", r)
		}
		if r := runOn(t.Context(), s, nil, nil, "blob", "lease", "acquire", "jobs/a", "--wait", "1m"); r.code != 0 {
			t.Errorf("%+v, want it acquired when it expires", r)
		}
		if took := time.Since(began); took < 15*time.Second || took > 25*time.Second {
			t.Errorf("acquired after %v, want soon after 15 s", took)
		}
	})
}

// TestAnAcquireThatIsCutOffLeavesNoLease interrupts the command while the response is outstanding.
func TestAnAcquireThatIsCutOffLeavesNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 2 * time.Second }})
		s.BlockBlob("jobs", "a")
		if r := runOn(t.Context(), s, nil, nil, "blob", "put", "jobs/a", "--file", "/dev/null"); r.code != 0 {
			t.Fatal(r)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(1500*time.Millisecond, func() { cancel(errors.New("interrupted")) }) // carried out, without a response
		if r := runOn(ctx, s, nil, nil, "blob", "lease", "acquire", "jobs/a", "--duration", "infinite"); r.code == 0 {
			t.Fatalf("%+v", r)
		}
		if v := runOn(t.Context(), s, nil, nil, "blob", "lease", "show", "jobs/a", "-o", "json").json(t); v["state"] != "available" {
			t.Errorf("the lease is %v\n%v", v["state"], s.Log())
		}
	})
}

// TestAnAcquireWithAnUnknownOutcomePrintsTheID loses every response, so that the lease can be neither seen nor released.
func TestAnAcquireWithAnUnknownOutcomePrintsTheID(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		synctest.Test(t, func(t *testing.T) {
			s := aztest.New(nil)
			s.BlockBlob("jobs", "a")
			if r := runOn(t.Context(), s, nil, nil, "blob", "put", "jobs/a", "--file", "/dev/null"); r.code != 0 {
				t.Fatal(r)
			}
			s.SetFaults(
				aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Acquire Blob Lease")},
				aztest.Fault{Kind: aztest.Answer, Status: 503, Code: "ServerBusy", Match: aztest.Op("Release Blob Lease")})
			r := runOn(t.Context(), s, nil, nil, "blob", "lease", "acquire", "jobs/a", "--duration", "infinite", "-o", format)
			s.SetFaults()
			id := strings.TrimSpace(r.out)
			if format == "json" {
				id, _ = r.json(t)["lease_id"].(string)
			}
			if r.code != fail.ExitUnknown || id == "" || !strings.Contains(r.stderr, "blob lease release jobs/a --lease-id "+id) {
				t.Fatalf("%s: %+v, want the id and what to do with it", format, r)
			}
			if r := runOn(t.Context(), s, nil, nil, "blob", "lease", "release", "jobs/a", "--lease-id", id); r.code != 0 {
				t.Errorf("%s: %+v, want it released under the id", format, r)
			}
		})
	}
}
