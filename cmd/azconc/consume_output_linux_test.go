//go:build !race

// The race detector sees nothing of what goes on between processes: scripts/test runs this file without it.

package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/azconc/azconc/pkg/aztest"
)

// TestAHandlerThatPrintsMuchNeedsNoMemory: 300 MB on stdout took 1.07 GB, and as much on stderr, without a newline, ten minutes.
func TestAHandlerThatPrintsMuchNeedsNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: 100 MiB are printed, and this is a short run")
	}
	const (
		size  = 100 << 20
		limit = 100 << 20
	)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	azconc, err := exec.LookPath("azconc")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{}, {"--concurrency", "2"}} {
		service := aztest.New(nil)
		queues, tables := httptest.NewServer(service.QueueHandler()), httptest.NewServer(service.TableHandler())
		t.Cleanup(queues.Close)
		t.Cleanup(tables.Close)
		if _, err := service.Queue("orders").EnqueueMessage(ctx, "x", nil); err != nil {
			t.Fatal(err)
		}
		command := fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x; head -c %[1]d /dev/zero | tr '\0' '#' >&2`, size)
		cmd := exec.CommandContext(ctx, azconc, append([]string{"queue", "consume", "orders", "--exit-when-empty", "--visibility", "10m", "--exec", command}, args...)...)
		cmd.Env = append(os.Environ(), "AZURE_STORAGE_CONNECTION_STRING="+fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%[1]s;AccountKey=%[2]s;QueueEndpoint=%[3]s/%[1]s;TableEndpoint=%[4]s/%[1]s;",
			aztest.Account, aztest.Key, queues.URL, tables.URL))
		out, said := &counted{of: 'x'}, &counted{of: '#'}
		cmd.Stdout, cmd.Stderr = out, said
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, said.rest.Bytes())
		}
		peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss * 1024
		t.Logf("%v: %d MiB resident at most, %v of CPU", args, peak>>20, cmd.ProcessState.UserTime())
		if out.n != size || said.n != size || peak > limit {
			t.Errorf("%v: %d and %d bytes came through, %d MiB resident: %s", args, out.n, said.n, peak>>20, said.rest.Bytes())
		}
	}
}

// counted counts one byte, and keeps the others.
type counted struct {
	of   byte
	n    int
	rest bytes.Buffer
}

func (c *counted) Write(p []byte) (int, error) {
	n := bytes.Count(p, []byte{c.of})
	if c.n += n; n < len(p) {
		c.rest.Write(bytes.ReplaceAll(p, []byte{c.of}, nil))
	}
	return len(p), nil
}
