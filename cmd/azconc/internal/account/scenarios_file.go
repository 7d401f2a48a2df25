package main

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pkg/aztest/conformance"
)

// updateFile: a file is read, changed and written under its lease.
func updateFile(t conformance.T, r *rig) {
	f := r.share(t, r.lossy).NewRootDirectoryClient().NewFileClient("counter.txt")
	_, err := files.Upload(t.Context(), f, strings.NewReader("100"), 3, &files.UploadOptions{Create: true})
	show(t, "upload", "ok", outcome(err))
	add := func(_ context.Context, old []byte) ([]byte, error) {
		n, err := strconv.Atoi(string(old))
		return strconv.AppendInt(nil, int64(n+1), 10), err
	}
	done, err := contend(3, 2, func() error { _, err := files.Update(t.Context(), f, add, nil); return err })
	show(t, "3 writers × 2 updates", "ok", outcome(err))
	value := func() string {
		var b bytes.Buffer
		if _, err := files.Download(t.Context(), f, &b, nil); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	show(t, "3 writers × 2 updates: value", 100+done, value())

	r.lose("Acquire File Lease")
	_, err = files.Update(t.Context(), f, add, nil)
	r.lost(t)
	show(t, "update, response to the acquisition lost", "ok", outcome(err))
	show(t, "update, response to the acquisition lost: value", 101+done, value())

	l, err := pessimistic.TryAcquire(t.Context(), files.NewFile(f), nil)
	show(t, "acquire", "ok", outcome(err))
	if err != nil {
		return
	}
	_, err = pessimistic.TryAcquire(t.Context(), files.NewFile(f), nil)
	is(t, "acquire while it is held", "held", err, errors.Is(err, pessimistic.ErrHeld))
	show(t, "release", "ok", outcome(l.Release(t.Context())))
}
