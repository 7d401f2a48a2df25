package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// rootPackage has the variables in which the linker writes the version and the commit. It says nothing when there is no variable
// of that name, so a binary that runs here is asked. What Go would stamp itself differs between a clone and a linked worktree.
const rootPackage = "github.com/azconc/azconc/cmd/azconc/internal/cli/root"

// compile builds the command for a target and returns the path of the binary. A static binary runs in any image and on any
// distribution; without its symbols it is a third smaller.
func (r *release) compile(ctx context.Context, work, target string) (string, error) {
	system, arch, _ := strings.Cut(target, "/")
	binary := filepath.Join(work, strings.ReplaceAll(target, "/", "_"), "azconc")
	if system == "windows" {
		binary += ".exe"
	}
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", fmt.Sprintf("-s -w -X %[1]s.Version=%[2]s -X %[1]s.Commit=%[3]s", rootPackage, r.version, r.commit), "-o", binary, ".")
	cmd.Dir = filepath.Join(r.source, "cmd", "azconc") // a module, whose go.mod says what a release contains
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build for %s: %w\n%s", target, err, out)
	}
	if target == runtime.GOOS+"/"+runtime.GOARCH {
		out, err := exec.CommandContext(ctx, binary, "version").Output()
		if err != nil || !bytes.HasPrefix(out, fmt.Appendf(nil, "azconc %s (commit %.12s, ", r.version, r.commit)) {
			return "", fmt.Errorf("the binary does not know what it was built from: azconc version printed %q (%v)", out, err)
		}
	}
	return binary, nil
}
