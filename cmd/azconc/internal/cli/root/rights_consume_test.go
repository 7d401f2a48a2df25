//go:build unix && !race

package root

import (
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/rights"
)

// TestAConsumerThatMayNotUpdateSaysSo has the right to receive and delete alone, as the role Storage Queue Data Message Processor has. A
// suspect's start could not be counted, it was put back for ever, and the exit code was 0; a long handler ended with "lost" alone.
func TestAConsumerThatMayNotUpdateSaysSo(t *testing.T) {
	t.Parallel()
	const again = "queue receive orders;queue extend orders ${message_id} --pop-receipt ${pop_receipt} --visibility 0s;"
	for name, row := range map[string]rightsRow{
		"a suspect's start":          {before: strings.Repeat(again, 4), args: "queue consume orders --exec true --exit-when-empty"},
		"a long handler":             {args: "queue consume orders --exec SLOW --visibility 12s --soft-stop 1s --exit-when-empty"},
		"a message that is put back": {args: "queue consume orders --exec false --exit-when-empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := prepared(t, row).run(t, row.args, []rights.Right{{Service: "queue", Types: "o", Letters: "p"}, {Service: "table", Types: "o", Letters: "rau"}})
			if r.code != fail.ExitUnauthorised || !strings.Contains(r.stderr, "lacks the permission u") || !strings.Contains(r.stderr, "Storage Queue Data Contributor") {
				t.Errorf("exit %d, %s, want %d, the permission and a role", r.code, r.stderr, fail.ExitUnauthorised)
			}
		})
	}
}
