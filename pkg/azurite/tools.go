package azurite

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// oldestNode is the oldest major version of Node.js that the tests have run on. Azurite's package asks for 22, which
// npm only warns about.
const oldestNode = 20

const nodeHint = "install Node.js 20 or newer with npm, by the package manager of your system or from https://nodejs.org"

// findNode returns the path of a node that is new enough.
func findNode(ctx context.Context) (string, error) {
	node, err := findTool("node")
	if err != nil {
		return "", err
	}
	// This does not start node's JavaScript engine: it takes milliseconds.
	out, err := exec.CommandContext(ctx, node, "--version").Output()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", &ToolError{Tool: "node", Problem: "node --version fails (" + err.Error() + ")", Hint: nodeHint, Err: err}
	}
	version := strings.TrimSpace(string(out))
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestNode {
		return "", &ToolError{Tool: "node", Problem: fmt.Sprintf("node is %.40q, older than %d", version, oldestNode), Hint: nodeHint}
	}
	return node, nil
}

func findTool(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", &ToolError{Tool: name, Problem: name + " is not on the PATH", Hint: nodeHint, Err: err}
	}
	return path, nil
}
