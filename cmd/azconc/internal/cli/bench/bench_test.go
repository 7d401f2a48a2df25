package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/pkg/aztest"
)

// ran holds the output of azconc bench.
type ran struct {
	code   int
	stdout string
	stderr string
	result
}

// account is the account acct, whose services are s; nil for the command without an account.
func bench(ctx context.Context, t *testing.T, s *aztest.Service, answer string, args ...string) ran {
	t.Helper()
	streams, in, out, stderr := cli.TestStreams()
	in.WriteString(answer)
	streams.InTerminal = answer != ""
	f := cli.NewFactory(streams, cli.Env{})
	defer f.Close()
	if s != nil {
		f.Wire = onAccount{s}
		args = append(args, "--account-name", "acct", "--account-key", aztest.Key)
	}
	root := &cobra.Command{Use: "azconc", SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: f.Begin}
	root.SetFlagErrorFunc(flags.FlagError)
	f.AddFlags(root)
	root.AddCommand(NewCmd(f))
	root.SetArgs(append([]string{"bench"}, args...))
	cmd, err := root.ExecuteContextC(ctx)
	r := ran{code: f.Report(ctx, cmd, err), stdout: out.String(), stderr: stderr.String()}
	if slices.Contains(args, "json") && r.stdout != "" {
		if err := json.NewDecoder(bytes.NewReader(out.Bytes())).Decode(&r.result); err != nil {
			t.Fatalf("%q, %q: %v", out, stderr, err)
		}
	}
	return r
}

// onAccount carries the requests to acct.blob.core.windows.net to a service in memory.
type onAccount struct{ s *aztest.Service }

func (o onAccount) Do(r *http.Request) (*http.Response, error) {
	inner := r.Clone(r.Context())
	to, err := url.Parse(o.s.BlobURL())
	if err != nil {
		return nil, err
	}
	inner.URL.Scheme, inner.URL.Host, inner.Host = to.Scheme, to.Host, to.Host
	inner.URL.Path, inner.URL.RawPath = to.Path+r.URL.Path, ""
	resp, err := o.s.Do(inner)
	if resp != nil {
		resp.Request = r
	}
	return resp, err
}

func far() *aztest.Service {
	return aztest.New(&aztest.Options{Latency: func() time.Duration { return 5 * time.Millisecond }})
}

// open returns what was created in s and not deleted, by what the requests say.
func open(s *aztest.Service) map[string]bool {
	names := map[string]bool{}
	for _, r := range s.Log() {
		switch {
		case strings.HasPrefix(r.Op, "Create ") && r.Status/100 == 2:
			names[strings.TrimPrefix(r.Op, "Create ")] = true
		case strings.HasPrefix(r.Op, "Delete ") && r.Status/100 == 2 && r.Op != "Delete Message":
			delete(names, strings.TrimPrefix(r.Op, "Delete "))
		}
	}
	return names
}

// Without an account, the whole command needs nothing but itself.
func TestWithoutAnAccountTheServiceInMemoryIsMeasured(t *testing.T) {
	r := bench(t.Context(), t, nil, "", "--workload", "blob,lock", "--clients", "1,2", "--for", "200ms", "--max-requests", "500", "-o", "json")
	if r.code != 0 || r.Outcome != "done" || r.Service != "the service in memory, 5ms away" || len(r.Cells) != 16 {
		t.Fatalf("exit %d: %s %s", r.code, r.stdout, r.stderr)
	}
	for _, c := range r.Cells {
		if c.Commits == 0 || c.CommitsPerS <= 0 || c.RequestsPerCommit < 0.25 {
			t.Errorf("%+v", c)
		}
	}
}

func TestTheTableIsForATerminal(t *testing.T) {
	r := bench(t.Context(), t, nil, "", "--workload", "blob", "--clients", "1", "--for", "60ms")
	for _, want := range []string{"blob:\n", "\nclients  way ", "\n      1  azconc ", "\n      1  full jitter ", " on the service in memory, "} {
		if !strings.Contains("\n"+r.stdout, want) {
			t.Errorf("%q is not in\n%s", want, r.stdout)
		}
	}
	for line := range strings.Lines(r.stdout) {
		if len([]rune(line)) > 101 {
			t.Errorf("%q is too wide", line)
		}
	}
}

func TestARealAccountIsNotChargedWithoutAYes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := far()
		r := bench(t.Context(), t, s, "", "--workload", "blob", "--clients", "8", "-o", "json")
		if r.code != fail.ExitUsage || !strings.Contains(r.stderr, "--yes answers the question") || !strings.Contains(r.stderr, "5 cells on the account acct: up to 25260 requests, which may cost up to $0.13") {
			t.Errorf("exit %d: %s", r.code, r.stderr)
		}
		if r := bench(t.Context(), t, s, "y\n", "--workload", "blob", "-o", "json"); r.code != 0 || r.Outcome != "declined" || len(r.Cells) != 0 {
			t.Errorf("exit %d: %s %s", r.code, r.stdout, r.stderr)
		}
		if n := s.Requests(); n != 0 {
			t.Errorf("%d requests", n)
		}
		r = bench(t.Context(), t, s, "yes\n", "--workload", "blob", "--clients", "8", "--for", "200ms", "-o", "json")
		if r.code != 0 || len(r.Cells) != 5 || int64(s.Requests()) != r.Requests || len(open(s)) != 0 || s.Requests() > 25260 {
			t.Errorf("exit %d, %d requests, left %v: %s %s", r.code, s.Requests(), open(s), r.stdout, r.stderr)
		}
	})
}

func TestAnInterruptedRunShowsWhatItHasAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, form := range []string{"json", "text"} {
			s := far()
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(3*time.Second, func() { cancel(&fail.SignalError{Signal: os.Interrupt}) })
			r := bench(ctx, t, s, "", "--workload", "blob", "--clients", "2", "--for", "1s", "--yes", "-o", form)
			if r.code != fail.ExitInterrupted || len(open(s)) != 0 {
				t.Errorf("exit %d, left %v: %s %s", r.code, open(s), r.stdout, r.stderr)
			}
			if form == "json" && (r.Outcome != "interrupted" || len(r.Cells) == 0 || len(r.Cells) == 5) || form == "text" && !strings.Contains(r.stdout, "azconc ") {
				t.Errorf("%s", r.stdout)
			}
		}
	})
}

func TestWhatIsLeftIsNamedWithItsRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := far()
		s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationPermissionMismatch", Match: aztest.Op("Delete Container")})
		r := bench(t.Context(), t, s, "", "--workload", "lock", "--clients", "1", "--for", "100ms", "--yes", "-o", "json")
		left := regexp.MustCompile(`left: container (azconc-bench-\w+), since .*AuthorizationPermissionMismatch.*; azconc container delete (azconc-bench-\w+) deletes it`)
		if m := left.FindStringSubmatch(r.stderr); r.code != 0 || m == nil || m[1] != m[2] || !open(s)["Container"] {
			t.Errorf("exit %d: %s", r.code, r.stderr)
		}
	})
}

func TestACellThatFailsEndsTheRunWithItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := far()
		s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationPermissionMismatch", Match: aztest.Op("Get Blob")})
		r := bench(t.Context(), t, s, "", "--workload", "blob", "--clients", "1", "--yes", "-o", "json")
		if r.code != fail.ExitUnauthorised || len(open(s)) != 0 || len(r.Cells) != 0 {
			t.Errorf("exit %d, left %v: %s %s", r.code, open(s), r.stdout, r.stderr)
		}
	})
}
