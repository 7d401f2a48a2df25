package explore_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/aztest/explore"
)

// leasers is a program of clients that each try once for a lease on one blob, renew and release it.
func leasers(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		p := increments(clients, nil)(w)
		d := &ward{}
		for i := range p.Clients {
			p.Clients[i] = func(ctx context.Context, c *explore.Client) error {
				l, err := pessimistic.TryAcquire(ctx, pessimistic.NewBlob(c.BlockBlob("box", "n")), &pessimistic.AcquireOptions{Duration: 18 * time.Second})
				if err != nil {
					return err
				}
				leave := d.enter(l.Context(), i, false)
				err = l.Renew(ctx)
				leave()
				return errors.Join(err, l.Release(ctx))
			}
		}
		p.Check = func() error {
			held := 0
			for _, err := range w.Errors() {
				if errors.Is(err, pessimistic.ErrHeld) {
					held++
				}
			}
			if held == clients {
				return fmt.Errorf("no client got a lease that was free: %v", w.Errors())
			}
			return errors.Join(d.overlap, leaseIsOver(w))
		}
		return p
	}
}

// leaseIsOver fails if the blob is still leased when every lease that a client may have left behind is over.
func leaseIsOver(w *explore.World) error {
	bubble.Sleep(19 * time.Second)
	return leaseIsFree(w)
}

func leaseIsFree(w *explore.World) error {
	seen, err := pessimistic.Look(context.Background(), pessimistic.NewBlob(w.Service.BlockBlob("box", "n")), nil)
	if err == nil && !seen.State.Free() {
		err = fmt.Errorf("the blob is still leased: %v", seen)
	}
	return err
}

func TestALeaseExcludesInEverySchedule(t *testing.T) {
	explored(t, and(usual, 2, 3, 0, 3, 2, 0), leasers, explore.Options{Kinds: withKills})
}

// breakers is a program of a client that holds a lease, and others that break it, leaving the holder the time that it
// has, and acquire it.
func breakers(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		p := increments(clients, nil)(w)
		d := &ward{}
		for i := range p.Clients {
			p.Clients[i] = func(ctx context.Context, c *explore.Client) error {
				target := pessimistic.NewBlob(c.BlockBlob("box", "n"))
				if i > 0 {
					if _, err := pessimistic.Break(ctx, target, nil); err != nil {
						return err
					}
				}
				l, err := pessimistic.Acquire(ctx, target, &pessimistic.AcquireOptions{Duration: 18 * time.Second, MaxWait: time.Minute, Poll: steady(10 * time.Second)})
				if err != nil {
					return err
				}
				leave := d.enter(l.Context(), i, false)
				err = l.Renew(l.Context())
				leave()
				return errors.Join(err, l.Release(ctx))
			}
		}
		p.Check = func() error { return errors.Join(d.overlap, leaseIsOver(w)) }
		return p
	}
}

func TestABreakLeavesTheHolderItsTimeInEverySchedule(t *testing.T) {
	explored(t, and(usual, 2, 3, 0, 3, 2, 1), breakers, explore.Options{})
}

// editors is a program of clients that each add 1 to the number in a file.
func editors(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		ctx := context.Background()
		start := w.Service.File("share", "n")
		if _, err := start.Create(ctx, 2, nil); err != nil {
			panic(err)
		}
		if err := start.UploadBuffer(ctx, []byte("00"), nil); err != nil {
			panic(err)
		}
		var p explore.Program
		for range clients {
			p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error {
				_, err := files.Update(ctx, c.File("share", "n"), func(_ context.Context, old []byte) ([]byte, error) {
					n, err := strconv.Atoi(string(old))
					return fmt.Appendf(nil, "%02d", n+1), err
				}, &files.UpdateOptions{Acquire: pessimistic.AcquireOptions{MaxWait: time.Minute, Poll: steady(10 * time.Second)}})
				return err
			})
		}
		p.Check = func() error {
			var content [2]byte
			if _, err := start.DownloadBuffer(ctx, content[:], nil); err != nil {
				return err
			}
			got, err := strconv.Atoi(string(content[:]))
			if err != nil {
				return err
			}
			sure, possible := claims(w)
			if got < count(sure) || got > count(possible) {
				return fmt.Errorf("the file holds %d, and the clients report %v", got, w.Errors())
			}
			return fileLeaseIsOver(start)
		}
		return p
	}
}

// fileLeaseIsOver fails if the file is still leased when BreakStale has ended the lease of a client that is gone. A
// file's lease does not expire, and one acquisition that arrives late leaves a lease of nobody.
func fileLeaseIsOver(client *file.Client) error {
	ctx := context.Background()
	bubble.Sleep(time.Minute)
	seen, err := pessimistic.Look(ctx, files.NewFile(client), nil)
	if err != nil || seen.State.Free() {
		return err
	}
	if err := files.BreakStale(ctx, client, 30*time.Second, nil); err != nil {
		return err
	}
	if seen, err = pessimistic.Look(ctx, files.NewFile(client), nil); err == nil && !seen.State.Free() {
		err = fmt.Errorf("the file is still leased: %v", seen)
	}
	return err
}

func TestAFileIsUpdatedOnceInEverySchedule(t *testing.T) {
	explored(t, and(usual[:4], 2, 2, 0, 3, 1, 1), editors, explore.Options{})
}
