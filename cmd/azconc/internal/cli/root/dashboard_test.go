package root

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/monitor"
	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/observe"
)

const telemetryFolder = "../../../../../pkg/telemetry/"

// queries returns the queries of the dashboard and of the alert rules, by panel or alert.
func queries(t *testing.T) map[string]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	for name, into := range map[string]any{"grafana.json": &dashboard, "alerts.yaml": &alerts} {
		data, err := os.ReadFile(telemetryFolder + name)
		if err != nil {
			t.Fatal(err)
		}
		if err = json.Unmarshal(data, into); name == "alerts.yaml" {
			err = yaml.Unmarshal(data, into)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	page, err := os.ReadFile(telemetryFolder + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, rule := range alerts.Groups[0].Rules {
		if all[rule.Alert] = rule.Expr; !strings.Contains(string(page), "| `"+rule.Alert+"` |") {
			t.Errorf("README.md does not say what %s means", rule.Alert)
		}
	}
	if n := strings.Count(string(page), "| `Azconc"); n != len(all) {
		t.Errorf("README.md has %d alerts, want %d", n, len(all))
	}
	for _, panel := range dashboard.Panels {
		for i, target := range panel.Targets {
			all[fmt.Sprint(panel.Title, " ", i)] = target.Expr
		}
	}
	return all
}

// stormed returns what is scraped after a storm in which everything happens that the dashboard and the alerts are about.
func stormed(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	_, m, err := monitor.Open(t.Context(), monitor.Options{Command: "test", Address: "127.0.0.1:0", Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(nil)
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 5 * time.Millisecond }})
		blowOnBlobs(t, s, m.Hooks())
		blowOnLocks(t, s, m.Hooks())
		blowOnMessages(t, s, m.Hooks())
	})
	resp, err := http.Get("http://" + m.Address() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

func blowOnBlobs(t *testing.T, s *aztest.Service, hooks observe.Hooks) {
	update := func(name string, attempts int) error {
		_, err := optimistic.Update(t.Context(), blobs.NewJSON[map[string]int](s.BlockBlob("box", name)), func(_ context.Context, m *map[string]int) error { *m = map[string]int{"n": (*m)["n"] + 1}; return nil },
			&optimistic.UpdateOptions{Create: true, Attempts: attempts, SendOptions: optimistic.SendOptions{Hooks: hooks}})
		return err
	}
	s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Put Blob"), Count: 3})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := update("n", -1); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i, faults := range [][]aztest.Fault{ // on blobs that have seen no contention, which begins with a look
		{{Kind: aztest.Throttle}}, {{Kind: aztest.Answer, Status: 500, Code: "OperationTimedOut"}}, {{Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure"}},
		{{Kind: aztest.LoseAnswer, Match: aztest.Op("Put Blob")}, {Kind: aztest.Refuse, Match: aztest.Op("Get Blob", "Get Blob Properties"), Skip: 1}},
	} {
		s.SetFaults(faults...)
		if err := update(fmt.Sprint("n", i), 1); err == nil {
			t.Errorf("%+v: no failure", faults)
		}
	}
	s.SetFaults()
}

func blowOnLocks(t *testing.T, s *aztest.Service, hooks observe.Hooks) {
	if _, err := s.Container("locks").Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	k, err := pessimistic.NewLocker(s.Container("locks"), &pessimistic.LockerOptions{Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	h, err := k.Lock(t.Context(), "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	bubble.Sleep(time.Minute)
	s.SetFaults(aztest.Fault{Kind: aztest.Refuse})
	bubble.Sleep(2 * time.Minute)
	s.SetFaults()
	if err := h.Release(t.Context()); !errors.Is(err, pessimistic.ErrLost) {
		t.Errorf("%v, want it lost", err)
	}
}

func blowOnMessages(t *testing.T, s *aztest.Service, hooks observe.Hooks) {
	producer, err := idempotent.NewProducer(s.Queue("orders"), &idempotent.ProducerOptions{Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"good", "bad"} {
		if _, err := producer.Send(t.Context(), idempotent.Outgoing{ID: body, Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	consumer, err := idempotent.NewConsumer(s.Queue("orders"), func(_ context.Context, m *idempotent.Message) error {
		if string(m.Body) == "bad" {
			return errors.New("no such order")
		}
		return nil
	}, &idempotent.ConsumerOptions{Dedupe: idempotent.DedupeNone, Poison: s.Queue("orders-poison"), MaxAttempts: 2, MaxMessages: 3, Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	if err := consumer.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

var (
	selector = regexp.MustCompile(`\b((?:azconc|messaging)_[a-z_]+?)(_bucket|_count|_sum)?\b(?:\{([^}]*)\})?(?:[\[) ]|$)`)
	matcher  = regexp.MustCompile(`(\w+)(=~|!=|=)"([^"]*)"`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

// given are labels that do not come from the scrape, and le, which is that of a bucket.
var given = []string{"job", "instance", "le"}

// TestTheDashboardAndTheAlertsAskForWhatThereIs: each metric, each label and each value of one that they name is in what is scraped
// after a storm.
func TestTheDashboardAndTheAlertsAskForWhatThereIs(t *testing.T) {
	families := stormed(t)
	valued := func(f *dto.MetricFamily, label, pattern string) bool {
		value := regexp.MustCompile("^(?:" + pattern + ")$")
		return slices.ContainsFunc(f.Metric, func(m *dto.Metric) bool {
			return slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetName() == label && value.MatchString(l.GetValue()) })
		})
	}
	asked := map[string]bool{}
	for name, query := range queries(t) {
		if strings.Count(query, "(") != strings.Count(query, ")") {
			t.Errorf("%s: %s", name, query)
		}
		found := selector.FindAllStringSubmatch(grouping.ReplaceAllString(query, " "), -1)
		if len(found) == 0 {
			t.Errorf("%s asks for no metric: %s", name, query)
		}
		var labels []string
		for _, g := range grouping.FindAllStringSubmatch(query, -1) {
			labels = append(labels, strings.Split(g[1], ", ")...)
		}
		for _, s := range found {
			family := families[s[1]]
			if family == nil || (s[2] != "") != (family.GetType() == dto.MetricType_HISTOGRAM) {
				t.Errorf("%s: there is no metric %s%s", name, s[1], s[2])
				continue
			}
			asked[s[1]] = true
			for _, m := range matcher.FindAllStringSubmatch(s[3], -1) {
				for pattern := range strings.SplitSeq(m[3], "|") {
					if m[2] == "!=" {
						pattern = ".+" // of a value that is left out, the label is enough
					}
					if !slices.Contains(given, m[1]) && !valued(family, m[1], pattern) {
						t.Errorf("%s: no series of %s has %s%s%q", name, s[1], m[1], m[2], pattern)
					}
				}
			}
			for _, label := range labels {
				if !slices.Contains(given, label) && !valued(family, label, ".+") {
					t.Errorf("%s: no series of %s has the label %s", name, s[1], label)
				}
			}
		}
	}
	for name := range families {
		if !asked[name] && (strings.HasPrefix(name, "azconc") || strings.HasPrefix(name, "messaging")) {
			t.Errorf("nothing asks for %s", name)
		}
	}
}
