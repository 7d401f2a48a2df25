//go:build !race

// The race detector multiplies memory: scripts/test runs this file without it.

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestLongContentIsUpdatedInBoundedMemory changes long content by a filter, which streams, and by jq, which holds the
// document. The first time the filter runs, another writer comes in between: it runs again, on what that one has stored. The
// service is in memory, in a process of its own.
func TestLongContentIsUpdatedInBoundedMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: 32 MiB are updated in each way, and this is a short run")
	}
	const size = 32 << 20
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	scratch := t.TempDir()
	azconc, err := exec.LookPath("azconc")
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "AZURE_STORAGE_CONNECTION_STRING="+serviceInMemory(ctx, t, azconc), "TMPDIR="+scratch, "AZCONC="+azconc)
	run := func(in io.Reader, out io.Writer, args ...string) (peak int64) {
		t.Helper()
		var stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, azconc, args...)
		cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, in, out, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("azconc %v: %v\n%s", args, err, &stderr)
		}
		return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss * 1024
	}
	base := run(nil, io.Discard, "container", "create", "jobs")
	run(io.LimitReader(repeating('a'), size), io.Discard, "blob", "put", "jobs/text", "--file", "-")
	var out bytes.Buffer
	peak := run(nil, &out, "blob", "update", "jobs/text", "--exec", `
		if [ "$AZCONC_ATTEMPT" = 1 ]; then "$AZCONC" blob update jobs/text --exec 'tr a b; printf end' >&2 || exit; fi
		tr ab cc`)
	t.Logf("--exec: %d MiB resident at most, %d at rest", peak>>20, base>>20)
	if limit := base + 24<<20; peak > limit {
		t.Errorf("%d bytes through --exec took %d MiB, want at most %d", size, peak>>20, limit>>20)
	}
	got := &checking{want: io.MultiReader(io.LimitReader(repeating('c'), size), strings.NewReader("end"))}
	if run(nil, got, "blob", "get", "jobs/text"); got.differs || got.n != size+3 {
		t.Errorf("%d bytes are stored, and differ: %v; %s", got.n, got.differs, &out)
	}
	const document = 8 << 20
	doc := func(n int) io.Reader {
		return io.MultiReader(strings.NewReader(fmt.Sprintf(`{"n":%d,"s":"`, n)), io.LimitReader(repeating('x'), document), strings.NewReader(`"}`))
	}
	run(doc(1), io.Discard, "blob", "put", "jobs/doc", "--file", "-")
	peak = run(nil, io.Discard, "blob", "update", "jobs/doc", "--jq", ".n += 1")
	t.Logf("--jq: %d MiB resident at most", peak>>20)
	if limit := base + document*16; peak > limit {
		t.Errorf("%d bytes through --jq took %d MiB, want at most %d", document, peak>>20, limit>>20)
	}
	got = &checking{want: doc(2)}
	if run(nil, got, "blob", "get", "jobs/doc"); got.differs || got.n != document+len(`{"n":1,"s":""}`) {
		t.Errorf("%d bytes are stored, and differ: %v", got.n, got.differs)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("left in TMPDIR: %v, %v", left, err)
	}
}

// serviceInMemory starts azconc dev up, and returns the connection string that it prints.
func serviceInMemory(ctx context.Context, t *testing.T, azconc string) string {
	t.Helper()
	up := exec.CommandContext(ctx, azconc, "dev", "up")
	out, err := up.StdoutPipe()
	if err == nil {
		err = up.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = up.Process.Signal(os.Interrupt)
		_ = up.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	_, value, ok := strings.Cut(strings.TrimSpace(line), "=")
	if err != nil || !ok {
		t.Fatalf("azconc dev up: %q, %v", line, err)
	}
	return strings.Trim(value, "'")
}

// repeating is one byte without an end.
type repeating byte

func (b repeating) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

// checking compares what is written with what is wanted, without keeping it.
type checking struct {
	want    io.Reader
	n       int
	differs bool
}

func (c *checking) Write(p []byte) (int, error) {
	want := make([]byte, len(p))
	_, err := io.ReadFull(c.want, want)
	c.differs = c.differs || err != nil || !bytes.Equal(p, want)
	c.n += len(p)
	return len(p), nil
}
