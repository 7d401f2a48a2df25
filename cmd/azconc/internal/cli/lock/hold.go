package lock

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/pessimistic"
)

type holdResult struct {
	Outcome string `json:"outcome"`
	Lock    string `json:"resource"`
	Owner   string `json:"owner"`
	Fence   int64  `json:"fence"`
	ETag    string `json:"etag"`
	LeaseID string `json:"lease_id"`
}

func (r holdResult) Text(w io.Writer) { fmt.Fprintln(w, r.Fence) }

func newHoldCmd(f *cli.Factory) *cobra.Command {
	var a acquireFlags
	var most time.Duration
	var stdin bool
	cmd := &cobra.Command{
		Use:   "hold <container/name>",
		Short: "Hold a lock until a signal, a timeout or the end of stdin",
		Long: `Hold a lock: acquire it, print its fence, renew it, and release it on INT, TERM or HUP, after --for, or with --stdin when stdin
ends. The exit code is then 0; it is 6 if another client holds the lock, and 9 if the lock was lost.

azconc lock run is the safer choice: it stops the work when the lock is lost. With lock hold, the caller
has to notice that azconc has exited.`,
		Example: `  azconc lock hold jobs/maintenance --for 1h
  coproc HOLD { azconc lock hold jobs/maintenance --stdin; }; read -u ${HOLD[0]} FENCE`,
	}
	a.add(cmd.Flags())
	flags.Duration(cmd.Flags(), &most, "for", false, "release it after this long (default on a signal)")
	cmd.Flags().BoolVar(&stdin, "stdin", false, "release it when stdin ends")
	open := func(on ref.Blob) (*pessimistic.Locker, error) {
		if err := a.parse(cmd.Flags()); err != nil {
			return nil, err
		}
		return Locker(f, on, a.lockerOptions(f))
	}
	return cli.On(f, cmd, ParseLock, open, func(ctx context.Context, on ref.Blob, k *pessimistic.Locker) (cli.Result, error) {
		h, err := k.Lock(ctx, on.Blob, &a.Lock)
		if err != nil {
			return nil, err
		}
		err = f.Print(holdResult{Outcome: "held", Lock: on.String(), Owner: h.Owner(), Fence: int64(h.Fence()), ETag: string(h.ETag()), LeaseID: h.ID()})
		if err == nil {
			var in io.Reader
			if stdin {
				in = f.In
			}
			err = untilRelease(h.Context(), most, in)
		}
		return nil, cmp.Or(err, h.Release(ctx))
	})
}

// untilRelease waits until the lock is to be released: by a signal, after a time, or when in ends. That is success.
func untilRelease(ctx context.Context, most time.Duration, in io.Reader) error {
	var over <-chan time.Time
	if most > 0 {
		over = time.After(most)
	}
	closed := make(chan struct{})
	if in != nil {
		go func() { // ends with stdin, or with the process
			_, _ = io.Copy(io.Discard, in)
			close(closed)
		}()
	}
	select {
	case <-over:
	case <-closed:
	case <-ctx.Done():
		if !fail.Signalled(ctx) {
			return context.Cause(ctx)
		}
	}
	return nil
}
