package arrows

import (
	"os/exec"
	"strings"
	"testing"
)

const sdk = "github.com/Azure/azure-sdk-for-go/sdk/"

// breaches returns the packages in deps, one per line, that a wall keeps out.
func (w wall) breaches(deps string) (found []string) {
	for dep := range strings.Lines(deps) {
		inside, ok := strings.CutPrefix(strings.TrimSpace(dep), sdk)
		for _, banned := range w.mayNotUse {
			if ok && strings.HasPrefix(inside, banned) {
				found = append(found, inside)
			}
		}
	}
	return found
}

func TestAProgramLinksOnlyTheSDKsItUses(t *testing.T) {
	for _, w := range walls {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"/"+w.pkg).Output()
		if err != nil {
			t.Fatalf("go list -deps %s: %v", w.pkg, err)
		}
		for _, found := range w.breaches(string(out)) {
			t.Errorf("%s links %s", w.pkg, found)
		}
	}
}

func TestABreachIsFound(t *testing.T) {
	w := wall{"x", []string{"storage/"}}
	if found := w.breaches("fmt\n" + sdk + "azcore\n" + sdk + "storage/azblob/blob\n"); len(found) != 1 || found[0] != "storage/azblob/blob" {
		t.Errorf("breaches = %q", found)
	}
}
