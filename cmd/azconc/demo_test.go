package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestTheDemoShowsTheBugAndTheCure runs what a new user runs first, with nothing but azconc on the PATH, and the same on Azurite.
func TestTheDemoShowsTheBugAndTheCure(t *testing.T) {
	for _, engine := range []string{"", "azurite"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			page := filepath.Join(t.TempDir(), "timeline.html")
			args, environ := []string{"demo", "-o", "json", "--scene", played, "--timeline", page}, os.Environ()
			if engine != "" {
				needAzurite(t)
				args = append(args, "--engine", engine)
			} else {
				environ = append(environ, "PATH="+t.TempDir())
			}
			checkDemo(t, args, environ)
			html, err := os.ReadFile(page)
			if err != nil || !bytes.Contains(html, []byte("<svg")) || bytes.Contains(html, []byte("http")) {
				t.Errorf("the timeline is no page that loads nothing: %v, %d bytes", err, len(html))
			}
		})
	}
}

// played are the scenes but lease-expired, which waits for 16 s: scene_test.go plays it in simulated time.
const played = "lost-answers,editors,lease,entity,message-once,files"

// checkDemo runs azconc, which must be as quick as a newcomer is patient.
func checkDemo(t *testing.T, args, environ []string) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
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
		Outcome string `json:"outcome"`
		Plain   struct {
			Reported int   `json:"reported"`
			Stored   int   `json:"stored"`
			Lost     int64 `json:"answers_lost"`
		} `json:"plain_loop"`
		Azconc struct {
			Reported int   `json:"reported"`
			Stored   int   `json:"stored"`
			Lost     int64 `json:"answers_lost"`
			Resolved int   `json:"resolved"`
		} `json:"azconc"`
		Scenes []struct {
			Name    string `json:"name"`
			Outcome string `json:"outcome"`
		} `json:"scenes"`
		Stale   bool `json:"stale_write_refused"`
		Created bool `json:"created_once"`
		Fenced  bool `json:"paused_holder_refused"`
		Lands   bool `json:"paused_holder_lands_without_fence"`
		Queue   struct {
			Reported int `json:"reported"`
			Stored   int `json:"stored"`
		} `json:"plain_queue"`
		Inbox struct {
			Reported  int `json:"reported"`
			Stored    int `json:"stored"`
			Ambiguous int `json:"ambiguous"`
		} `json:"azconc_queue"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if got.Outcome != "done" || got.Plain.Reported != 60 || got.Plain.Stored <= 60 || got.Plain.Lost == 0 {
		t.Errorf("the plain loop: %s", out)
	}
	if got.Azconc.Reported != 60 || got.Azconc.Stored != 60 || got.Azconc.Lost == 0 || got.Azconc.Resolved == 0 {
		t.Errorf("azconc: %s", out)
	}
	if got.Queue.Stored <= got.Queue.Reported || got.Inbox.Stored != got.Inbox.Reported || got.Inbox.Ambiguous == 0 {
		t.Errorf("the queues: %s", out)
	}
	for _, s := range got.Scenes {
		if s.Outcome != "done" && s.Name != "files" {
			t.Errorf("scene %s: %s", s.Name, s.Outcome)
		}
	}
	if len(got.Scenes) != 5 {
		t.Errorf("%d scenes, want 5", len(got.Scenes))
	}
	if !got.Stale || !got.Created || !got.Fenced || !got.Lands {
		t.Errorf("the other scenes: %s", out)
	}
}
