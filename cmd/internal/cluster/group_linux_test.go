package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// group shares 16 parts among pods that become more and fewer, and kills one of them.
func (c *cluster) group() {
	c.t.Helper()
	const parts = 16
	scale := func(pods int) {
		c.t.Helper()
		worker := fmt.Sprintf(`while :; do echo "ingest $AZCONC_PART $HOSTNAME/$AZCONC_LOCK_FENCE" >>%s; sleep 0.3; done`, c.effects)
		c.apply(fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: ingest}
spec:
  replicas: %d
  selector: {matchLabels: {app: ingest}}
  template:
    metadata: {labels: {app: ingest}}
    spec:
      containers:
        - name: member
          image: member:7
          command: [azconc, group, run, jobs/ingest, --parts=%d, --duration=15s, --drain=5s, --, sh, -c, %q]
          env: [{name: AZURE_STORAGE_CONNECTION_STRING, valueFrom: {secretKeyRef: {name: storage, key: connection-string}}}]
`, pods, parts, strings.ReplaceAll(worker, "$", "$$")))
		c.scaled("ingest", pods)
		c.evenly("jobs/ingest", pods)
	}
	scale(3)
	scale(6)
	killed := c.kill(c.running("ingest")[0])
	c.evenly("jobs/ingest", 6)
	scale(2)
	worked, overlaps := shifts(c.lines())
	c.done("a group, 3 → 6 → 2", "ingest", parts, killed, verdict{effects: worked, unexplained: overlaps})
	if err := c.client.AppsV1().Deployments("default").Delete(c.t.Context(), "ingest", metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.scaled("ingest", 0)
}

// evenly waits until a group has so many members, and all of its parts are shared by them evenly.
func (c *cluster) evenly(group string, members int) {
	c.t.Helper()
	until(c.t, 2*time.Minute, fmt.Sprintf("%d members of %s", members, group), func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, filepath.Join(c.dir, "azconc"), "group", "show", group, "-o", "json")
		cmd.Env = append(cmd.Environ(), "AZURE_STORAGE_CONNECTION_STRING="+c.account)
		text, err := cmd.Output()
		if err != nil {
			return err
		}
		var shown struct {
			Parts   []struct{}
			Members []struct{ Parts int }
		}
		if err := json.Unmarshal(text, &shown); err != nil {
			return err
		}
		held := 0
		for _, m := range shown.Members {
			if fair := len(shown.Parts) / members; m.Parts != fair && m.Parts != fair+1 {
				return fmt.Errorf("a member has %d of %d parts", m.Parts, len(shown.Parts))
			}
			held += m.Parts
		}
		if held != len(shown.Parts) {
			return fmt.Errorf("%d of %d parts are held", held, len(shown.Parts))
		}
		return same(len(shown.Members), members)
	})
}
