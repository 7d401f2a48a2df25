package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/internal/demo/scene"
)

// TestTheDemoShowsTheBugAndTheCure runs what a new user runs first, with nothing but azconc on the PATH, and the same on Azurite.
func TestTheDemoShowsTheBugAndTheCure(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"", "azurite"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			args, environ := []string{"demo", "-o", "json", "--scene", played}, os.Environ()
			if engine != "" {
				if needAzurite(t); testing.Short() {
					t.Skip("SKIP: the scenes take longer there, and this is a short run")
				}
				args = append(args, "--engine", engine)
			} else {
				environ = append(environ, "PATH="+t.TempDir())
			}
			checkDemo(t, args, environ)
		})
	}
}

// played are scenes of all services.
const played = "lost-answers,lost-sends,paused-holder,editors,lease,entity,files"

// checkDemo runs azconc, which must be as quick as a newcomer is patient.
func checkDemo(t *testing.T, args, environ []string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	azconc, err := exec.LookPath("azconc")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, azconc, args...)
	cmd.Env = environ
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("azconc demo: %v", err)
	}
	var got struct {
		Outcome string         `json:"outcome"`
		Scenes  []scene.Result `json:"scenes"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if got.Outcome != "done" || len(got.Scenes) != len(strings.Split(played, ",")) {
		t.Errorf("%s: %d scenes", got.Outcome, len(got.Scenes))
	}
	tallies := map[string]scene.Tally{}
	for _, s := range got.Scenes {
		if s.Outcome != "done" && s.Name != "files" {
			t.Errorf("scene %s: %s", s.Name, s.Outcome)
		}
		for _, w := range s.Tallies {
			tallies[w.Way] = w
			if w.Lost == 0 {
				t.Errorf("%s has lost no response", w.Way)
			}
		}
	}
	for plain, sure := range map[string]string{"plain If-Match loop": "azconc blob update", "plain queue": "azconc queue"} {
		if p := tallies[plain]; p.Reported == 0 || p.Effects <= p.Reported {
			t.Errorf("%+v: the plain way has done no more than it reported", p)
		}
		if a := tallies[sure]; a.Reported == 0 || a.Effects != a.Reported {
			t.Errorf("%+v: azconc has not done what it reported", a)
		}
	}
}
