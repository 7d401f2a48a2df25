package replay

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newBody(b []byte) io.Reader { return bytes.NewReader(b) }

func facts(t *testing.T, service string) []Scenario {
	t.Helper()
	all, err := Read(filepath.Join("testdata", service+".jsonl.gz"), service)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheInMemoryServiceAnswersAsRealAccountsDid(t *testing.T) {
	outer := t
	for _, service := range Services {
		n, agree := 0, 0
		for _, s := range facts(t, service) {
			synctest.Test(t, func(t *testing.T) {
				bubble.Sleep(time.Until(s.Began))
				memory := aztest.New(nil)
				p := newPlayer(server{
					url:  map[string]string{"blob": memory.BlobURL(), "file": memory.FileURL(), "queue": memory.QueueURL(), "table": memory.TableURL()},
					send: memory.Do, exact: true,
				}, s)
				for i, step := range s.Steps {
					if wait := time.Until(s.Began.Add(time.Duration(step.At) * time.Second)); wait > 0 {
						bubble.Sleep(wait)
					}
					d := p.play()
					if feature(s, step) != "" {
						continue
					}
					n++
					if len(d) == 0 {
						agree++
						continue
					}
					for _, one := range d {
						outer.Logf("%s/%s %d: %s %s?%s: %s", service, s.Name, i, step.Method, step.Path, step.Query, one)
					}
				}
			})
		}
		t.Logf("%s: %d of %d", service, agree, n)
	}
}
