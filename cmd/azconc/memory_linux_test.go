//go:build !race

// The race detector sees nothing of what goes on between processes: scripts/test runs this file without it.

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// TestALargeBlobGoesThroughInBoundedMemory sends three times what may be resident through put and get, as streams, and looks at what the processes
// needed. It builds azconc as users do: the race detector multiplies memory.
func TestALargeBlobGoesThroughInBoundedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it takes a quarter of a minute, and this is a short run")
	}
	const size = 384 << 20
	account := azuritetest.Account(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	azconc := filepath.Join(t.TempDir(), "azconc")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", azconc, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	run := func(in io.Reader, out io.Writer, args ...string) (peak int64) {
		t.Helper()
		var stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, azconc, args...)
		cmd.Env = append(os.Environ(), "AZURE_STORAGE_CONNECTION_STRING="+account.ConnectionString())
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("azconc %v: %v\n%s", args, err, &stderr)
		}
		peak = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss * 1024
		t.Logf("azconc %v: %d MiB resident at most, %v", args, peak>>20, cmd.ProcessState.UserTime())
		return peak
	}
	var seed [32]byte
	sent, got := sha256.New(), sha256.New()
	// Linux counts what this process had resident when it started the other, so that a small command shows what that is.
	limit := max(run(nil, io.Discard, "container", "create", "big")+16<<20, 128<<20)
	put := run(io.TeeReader(io.LimitReader(rand.NewChaCha8(seed), size), sent), io.Discard, "blob", "put", "big/blob", "--file", "-")
	get := run(nil, got, "blob", "get", "big/blob")
	if put > limit || get > limit {
		t.Errorf("put had %d MiB resident and get %d, want at most %d", put>>20, get>>20, limit>>20)
	}
	if want := fmt.Sprintf("%x", sent.Sum(nil)); fmt.Sprintf("%x", got.Sum(nil)) != want {
		t.Error("what came back is not what was sent")
	}
}
