//go:build unix && !race

package root

import (
	"fmt"
	"strings"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/rights"
)

// rightsPage is the page of the table of rights.
func rightsPage() string {
	var b strings.Builder
	b.WriteString(rightsIntro)
	for _, row := range rights.Rows() {
		verb, note := "`azconc "+row.Verb+"`", row.Note
		if name, state, has := strings.Cut(row.Verb, ", "); has {
			verb = "`azconc " + name + "`, " + state
		}
		for _, need := range row.Rights {
			permissions := need.Letters
			if need.More != "" {
				permissions += ", better `" + need.Letters + need.More + "`"
			}
			if permissions = "`" + strings.Replace(permissions, ", ", "`, ", 1); !strings.HasSuffix(permissions, "`") {
				permissions += "`"
			}
			if need.Letters == "" {
				permissions = "none: the account key"
			}
			fmt.Fprintf(&b, "| %s | %s | `%s` | %s | %s | %s |\n", verb, need.Service, need.Types, permissions, need.Role(), note)
			verb, note = "", ""
		}
	}
	return b.String() + rightsEnd
}

const rightsIntro = `# Rights

What each verb needs: the permissions of a shared access signature (SAS), and the least privileged built-in role for Microsoft Entra ID.
TestEachVerbNeedsExactlyItsRights writes this page, and runs each row on a service that verifies signatures: with exactly these
permissions, and with each permission and each type of resource left out, which has to end with exit code 77 and a message that names what
is missing. ` + "`azconc doctor --for \"queue consume\"`" + ` prints what a verb needs and compares it with the SAS that is given.

- The columns are those of an account SAS: **srt** is the types of resources (` + "`s`" + ` service, ` + "`c`" + ` container, queue, table or share, ` + "`o`" + ` blob,
  message, entity or file), and **sp** the permissions.
- A SAS of one container, queue, table or share has the same permissions and no types. It is sufficient for rows with ` + "`o`" + ` alone, for lists of
  blobs and files, and for ` + "`queue show`" + `. Everything else with ` + "`c` or `s`" + ` needs an account SAS, a key or a role.
- "better" is what the verb can do without: the last column says what is then missing.
- A role may be assigned for one container, queue or table, but for a list of all. "Reader" and "Storage Account Contributor" are roles for
  management, whose actions the service accepts for these requests.
- Not in the table, since they need no right: ` + "`version`, `demo`, `dev`, and `doctor`" + `, which reports what is not permitted. ` + "`bench`" + `
  makes a container and tables of its own: use the key of a test account.

| verb | service | srt | sp | role | |
|---|---|---|---|---|---|
`

const rightsEnd = `
## Go

A call in Go needs what its verb needs. What takes locks (` + "`Locker`, `RWLock`, `Semaphore`, an election, `blobs.Fenced`" + `): ` + "`lock run`" + `.
` + "`optimistic.Create`" + `: ` + "`blob put --if-none-match '*'`, or `table insert`. `optimistic.Update` and `Put`: `blob update`, `table update`, `file update`" + `.
` + "`optimistic.Delete`: `blob delete`, `table delete-entity`. `sharded.Counter`: `counter`. `tables.Upsert`: `table upsert`. `tables.Submit`: `table transact`" + `.
` + "`once.Once`: `once run`. `idempotent.Consumer`: `queue consume`. `group.Group`: `group run`. `Locker.GC`: `lock gc`" + `.
TestEachGoCallNeedsTheRightsOfItsVerb runs them with exactly these rights.

## Accounts with a hierarchical namespace

Such an account (Data Lake Storage Gen2) has directories, so that a name that is a directory cannot be a blob, and the other way round:
with a blob ` + "`jobs/state`, a blob `jobs/state/eu`" + ` is refused (` + "`PathConflict`, `ResourceTypeMismatch`" + `). Index tags, versions, page blobs
and conditions on tags do not exist there (` + "`FeatureNotYetSupportedForHierarchicalNamespaceAccounts`" + `). Locks, semaphores, counters and claim
checks use names with slashes below their own name, such as ` + "`pool/slot/0`" + `: give no blob the name of a semaphore, a group or a counter.
` + "`azconc doctor`" + ` says whether an account is of this kind.
`
