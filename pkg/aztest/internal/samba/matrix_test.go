package samba

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const sharingViolation = "SharingViolation"

// cell is the outcome of an operation while a client shares the file as the row says.
type cell struct{ row, operation, got, want string }

// shared carries out an operation on a file that a client has open.
type shared func(t *testing.T, share Sharing, operation string) string

// shareMatrix fills in the table of share modes, or some of its operations.
func shareMatrix(t *testing.T, do shared, operations ...string) []cell {
	t.Helper()
	var cells []cell
	for _, row := range documentedShareModes(t) {
		for _, op := range operations {
			want := succeeded
			if slices.Contains(row.refused, op) {
				want = sharingViolation
			}
			cells = append(cells, cell{row.name, op, do(t, row.share, op), want})
		}
	}
	return cells
}

func allOperations() []string {
	var names []string
	for _, op := range operationsOnFiles {
		names = append(names, op.name)
	}
	return names
}

// judge lists the cells that differ from the documentation.
func judge(cells []cell) []string {
	var wrong []string
	for _, c := range cells {
		if c.got != c.want {
			wrong = append(wrong, fmt.Sprintf("%s while a client has the file open with %s: %s, documented is %s", c.operation, c.row, c.got, c.want))
		}
	}
	return wrong
}

// tabulate formats the cells as a table.
func tabulate(cells []cell) string {
	var rows, operations []string
	got := map[[2]string]string{}
	for _, c := range cells {
		if !slices.Contains(rows, c.row) {
			rows = append(rows, c.row)
		}
		if !slices.Contains(operations, c.operation) {
			operations = append(operations, c.operation)
		}
		got[[2]string{c.row, c.operation}] = c.got
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| an SMB client has it open with | %s |\n|---|%s\n", strings.Join(operations, " | "), strings.Repeat("---|", len(operations)))
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s |", row)
		for _, op := range operations {
			fmt.Fprintf(&b, " %s |", got[[2]string{row, op}])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// throughSamba lets Samba decide. Each cell has a file of its own. The client has it open for reading: the table does
// not say for which access, and with any other a lease would always fail. The bridge does not list handles: the opens
// decide everything.
func throughSamba(s *Server, b *Bridge, c *Client) shared {
	b.countsHandles = false
	n := 0
	return func(t *testing.T, share Sharing, operation string) string {
		t.Helper()
		n++
		name := fmt.Sprintf("f%d", n)
		place(t, s, name)
		f := open(t, c, name, Open{Access: AccessRead, Share: share})
		got := outcome(do(t.Context(), b.File(name), operation))
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return got
	}
}

func TestWhatAnSMBClientDoesNotShareIsRefusedAsDocumented(t *testing.T) {
	s := Start(t)
	cells := shareMatrix(t, throughSamba(s, NewBridge(t, s), dial(t, s)), allOperations()...)
	for _, wrong := range judge(cells) {
		t.Error(wrong)
	}
	if len(cells) != 8*8 {
		t.Errorf("%d cells", len(cells))
	}
	t.Logf("decided by Samba:\n%s", tabulate(cells))
}

// The judge must be able to fail: it convicts a bridge that opens the file for an operation in another way than
// documented, whatever the operation.
func TestABridgeThatOpensWithAnotherModeIsConvicted(t *testing.T) {
	s := Start(t)
	c := dial(t, s)
	for _, op := range allOperations() {
		b := NewBridge(t, s)
		mutant := b.opens[op]
		mutant.Access = AccessAttributes
		if op == opDelete {
			mutant = Open{Access: AccessDelete, Share: ShareAll}
		}
		b.opens[op] = mutant
		if wrong := judge(shareMatrix(t, throughSamba(s, b, c), op)); len(wrong) == 0 {
			t.Errorf("%s opens with %+v, and nobody notices", op, mutant)
		}
	}
}

func TestPropertiesAndListsNeedNoAccess(t *testing.T) {
	s := Start(t)
	b, c := NewBridge(t, s), dial(t, s)
	place(t, s, "f")
	for _, row := range documentedShareModes(t) {
		f := open(t, c, "f", Open{Access: AccessRead | AccessWrite, Share: row.share})
		_, err := b.File("f").GetProperties(t.Context(), nil)
		wantOK(t, row.name, err)
		if names := listed(t, b.Share().NewRootDirectoryClient()); !slices.Equal(names, []string{"f"}) {
			t.Errorf("%s: listed are %q", row.name, names)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The page's two examples of a request that is refused.
func TestTheExamplesOfTheDocumentation(t *testing.T) {
	s := Start(t)
	b, c := NewBridge(t, s), dial(t, s)
	for _, test := range []struct {
		name string
		open Open
		op   string
	}{
		{"Get File while a reader shares writing", Open{Access: AccessRead, Share: ShareWrite}, opGet},
		{"Put Range while a writer shares reading", Open{Access: AccessWrite, Share: ShareRead}, opPutRange},
	} {
		place(t, s, "f")
		held := open(t, c, "f", test.open)
		wantCode(t, test.name, do(t.Context(), b.File("f"), test.op), 409, sharingViolation)
		if err := held.Close(); err != nil {
			t.Fatal(err)
		}
		wantOK(t, test.name+", closed", do(t.Context(), b.File("f"), test.op))
	}
}
