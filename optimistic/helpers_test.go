package optimistic_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// bothDates runs a test in a bubble with a service whose Date header is exact, and with one whose Date lags behind its
// writes by up to two seconds and goes back by a second now and then, as that of recorded accounts does.
func bothDates(t *testing.T, content string, test func(t *testing.T, s *aztest.Service, client *blockblob.Client)) {
	t.Helper()
	for name, lag := range map[string]time.Duration{"Date is exact": 0, "Date lags": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(&aztest.Options{DateLag: lag})
				client := s.BlockBlob("box", "n.json")
				optest.Put(t, client, content)
				s.Reset()
				test(t, s, client)
			})
		})
	}
}

// slots is the number of counters in the value of a target, one per writer.
const slots = 4

// numbersOf parses the counters in text that textOf returned.
func numbersOf(text string) []int {
	n := make([]int, slots)
	for i, part := range strings.Split(text, ".") {
		if i < slots {
			_, _ = fmt.Sscan(part, &n[i])
		}
	}
	return n
}

// textOf encodes counters as text.
func textOf(n []int) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(n), " ", "."), "[]") }

// inMap returns the counters in a map.
func inMap(m map[string]string) []int { return numbersOf(m["n"]) }

// toMap stores counters in a map.
func toMap(m *map[string]string, n []int) { (*m)["n"] = textOf(n) }

// crowdCommits is how many updates each of the crowds of the tests makes.
var crowdCommits = flag.Int("commits", 350, "updates of each crowd")
