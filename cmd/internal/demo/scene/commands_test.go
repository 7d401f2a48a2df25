package scene

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// checkCommand looks for a command and its flags in the golden help, which has a section for each command.
func checkCommand(t *testing.T, command string) {
	t.Helper()
	words := strings.Fields(strings.SplitN(command, " -- ", 2)[0])
	if len(words) < 3 || words[0] != "azconc" {
		t.Errorf("%q is no command of azconc", command)
		return
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "azconc", "internal", "cli", "root", "testdata", "help", words[1]+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	help, section, found := strings.ReplaceAll(string(text), "\r\n", "\n"), "", false
	for n := 1; n < len(words); n++ {
		_, rest, ok := strings.Cut(help, "$ azconc help "+strings.Join(words[1:n+1], " ")+"\n")
		if !ok {
			break
		}
		section, found = strings.SplitN(rest, "\n$ azconc help ", 2)[0], n > 1
	}
	if !found {
		t.Errorf("there is no command for %q", command)
	}
	for _, w := range words {
		if strings.HasPrefix(w, "--") && !strings.Contains(section, w+" ") {
			t.Errorf("%q: there is no flag %s", command, w)
		}
	}
}
