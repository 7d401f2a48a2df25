package samba

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shareMode is a row of "SMB client sharing mode implications on FileREST": the access that an SMB client with an open
// file shares, and the operations that fail. The table does not mention the access that the file is open for.
type shareMode struct {
	name    string
	share   Sharing
	refused []string
}

// access is a row of the two tables about leases: whether the lease, and whether the open, is refused.
type access struct {
	name    string
	access  Access
	acquire string
	open    string
}

func documentedShareModes(t *testing.T) (modes []shareMode) {
	t.Helper()
	for _, row := range rows(t, "sharing.md") {
		m := shareMode{name: row[0], refused: strings.Split(row[1], ", ")}
		for _, op := range m.refused {
			if !slices.Contains(allOperations(), op) {
				t.Fatalf("%s: %q is no operation", m.name, op)
			}
		}
		m.share = sum(t, strings.TrimPrefix(m.name, "Shared "), "/", map[string]Sharing{"None": ShareNone, "Read": ShareRead, "Write": ShareWrite, "Delete": ShareDelete})
		modes = append(modes, m)
	}
	if len(modes) != 8 {
		t.Fatalf("the table has %d rows, want 8", len(modes))
	}
	return modes
}

func documentedAccesses(t *testing.T) (list []access) {
	t.Helper()
	for _, row := range rows(t, "leases.md") {
		flags := sum(t, row[0], "|", map[string]Access{"None": AccessAttributes, "Read": AccessRead, "Write": AccessWrite, "Delete": AccessDelete})
		list = append(list, access{row[0], flags, row[1], row[2]})
	}
	if len(list) != 8 {
		t.Fatalf("the table has %d rows, want 8", len(list))
	}
	return list
}

func sum[T ~uint32](t *testing.T, names, separator string, flags map[string]T) (all T) {
	t.Helper()
	for _, name := range strings.Split(names, separator) {
		flag, ok := flags[name]
		if !ok {
			t.Fatalf("%q has an unknown part", names)
		}
		all |= flag
	}
	return all
}

// rows parses the body of the table in a file of testdata. A bar within a cell is escaped by a backslash.
func rows(t *testing.T, name string) (out [][]string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	_, body, ok := strings.Cut(strings.ReplaceAll(string(data), "\r\n", "\n"), "|---|")
	if !ok {
		t.Fatalf("%s has no table", name)
	}
	const bar = "\x00"
	for _, line := range strings.Split(body, "\n")[1:] {
		if line == "" {
			continue
		}
		cells := strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), `\|`, bar), "|")
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(c), bar, "|")
		}
		out = append(out, cells)
	}
	return out
}
