package explore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/aztest/explore"
)

// vandals is a program of one client outside azconc, which does something to the blob of a lock, and others that take the lock
// and write through its fence.
func vandals(does func(ctx context.Context, lock *blockblob.Client) error) func(clients int) func(*explore.World) explore.Program {
	return func(clients int) func(*explore.World) explore.Program {
		return func(w *explore.World) explore.Program {
			p := lockers(clients)(w)
			last := len(p.Clients) - 1
			takes := p.Clients[last]
			p.Clients[last] = func(ctx context.Context, c *explore.Client) error {
				bubble.Sleep(10 * time.Second)
				return takes(ctx, c)
			}
			p.Clients[0] = func(ctx context.Context, c *explore.Client) error {
				bubble.Sleep(5 * time.Second)            // the others have had the lock by then, and the last one has not
				_ = does(ctx, c.BlockBlob("locks", "l")) // refused while the lock is held
				return errVandal
			}
			return p
		}
	}
}

var errVandal = errors.New("this client is outside azconc")

func TestFencesGrowWhateverOthersDoToALockInEverySchedule(t *testing.T) {
	for name, does := range map[string]func(context.Context, *blockblob.Client) error{
		"deleted": func(ctx context.Context, lock *blockblob.Client) error {
			_, err := lock.Delete(ctx, nil)
			return err
		},
		"overwritten": func(ctx context.Context, lock *blockblob.Client) error {
			_, err := lock.UploadBuffer(ctx, []byte("not a lock"), nil)
			return err
		},
		"emptied": func(ctx context.Context, lock *blockblob.Client) error {
			_, err := lock.SetMetadata(ctx, map[string]*string{"other": to.Ptr("1")}, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			explored(t, and([]bounds{{clients: 3, preemptions: 1}}, 2, 1, 0, 3, 1, 1), vandals(does), explore.Options{})
		})
	}
}
