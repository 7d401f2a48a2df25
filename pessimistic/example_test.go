package pessimistic_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

// Work under a lease on a blob. The context ends when the lease cannot be relied upon any more.
func ExampleDo() {
	service := aztest.New(nil)
	state := service.BlockBlob("jobs", "state.json")
	_, _ = state.UploadBuffer(context.Background(), []byte("{}"), nil)

	err := pessimistic.Do(context.Background(), pessimistic.Blob(state), nil, func(ctx context.Context, l *pessimistic.Lease) error {
		fmt.Println("nobody else writes", l.Resource(), "for", l.Duration())
		return ctx.Err()
	})
	fmt.Println(err)
	// Output:
	// nobody else writes jobs/state.json for 30s
	// <nil>
}

// Orders is what the blob of the next example holds.
type Orders []string

func addOrder(_ context.Context, list *Orders) error {
	*list = append(*list, "order-17")
	return nil
}

// A named lock, and a blob that only the latest holder can write.
func ExampleLocker_Do() {
	ctx := context.Background()
	service := aztest.New(nil)
	blob := service.BlockBlob("data", "orders.json")
	locks := service.Container("locks")
	_, _ = locks.Create(ctx, nil)
	_, err := optimistic.Create(ctx, blobs.NewJSON[Orders](blob), Orders{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	locker, err := pessimistic.NewLocker(locks, &pessimistic.LockerOptions{Owner: "web-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = locker.Do(ctx, "orders", nil, func(ctx context.Context, h *pessimistic.Held) error {
		_, err := optimistic.Update(ctx, blobs.Fenced(h, blobs.NewJSON[Orders](blob)), addOrder, nil)
		return err
	})
	fmt.Println(err)
	// Output: <nil>
}

// Another process holds the lock. TryLock says which.
func ExampleLocker_TryLock() {
	locks := aztest.New(nil).Container("locks")
	_, _ = locks.Create(context.Background(), nil)

	theirs, _ := pessimistic.NewLocker(locks, &pessimistic.LockerOptions{Owner: "web-1"})
	held, err := theirs.Lock(context.Background(), "nightly", &pessimistic.LockOptions{Wait: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = held.Release(context.Background()) }()

	ours, _ := pessimistic.NewLocker(locks, &pessimistic.LockerOptions{Owner: "web-2"})
	_, err = ours.TryLock(context.Background(), "nightly")
	if other, ok := errors.AsType[*pessimistic.HeldError](err); ok {
		fmt.Println("held by", other.Holder)
	}
	// Output: held by web-1
}

// A read-modify-write of a file. FileREST has no conditions, so it is done under a lease of the file.
func ExampleUpdateFile() {
	f := aztest.New(nil).File("share", "counter.txt")
	_, _ = pessimistic.UploadFile(context.Background(), f, strings.NewReader("41"), 2, &pessimistic.UploadFileOptions{Create: true})

	done, err := pessimistic.UpdateFile(context.Background(), f, func(_ context.Context, old []byte) ([]byte, error) {
		n, err := strconv.Atoi(string(old))
		return strconv.AppendInt(nil, int64(n+1), 10), err
	}, nil)
	fmt.Println(done.Changed, done.Requests, err)

	_, err = pessimistic.DownloadFile(context.Background(), f, os.Stdout, nil)
	fmt.Println("", err)
	// Output:
	// true 6 <nil>
	// 42 <nil>
}

// An SMB client has the file open. DeleteFile does not wait for it here, and the error names the client.
func ExampleDeleteFile() {
	service := aztest.New(nil)
	f := service.File("share", "report.docx")
	_, _ = f.Create(context.Background(), 1, nil)
	service.OpenSMB("share", "report.docx", aztest.SMBHandle{ID: "1", ClientName: "DESK-7"})

	_, err := pessimistic.DeleteFile(context.Background(), f, &pessimistic.DeleteFileOptions{Wait: &pessimistic.WaitOptions{Wait: time.Millisecond}})
	if used, ok := errors.AsType[*pessimistic.InUseError](err); ok {
		fmt.Println(used.Reason, used.Handles[0].ClientName, errors.Is(err, pessimistic.ErrHeld))
	}

	closed, err := pessimistic.ForceClose(context.Background(), f, []string{pessimistic.AllHandles}, nil)
	fmt.Println(closed.Closed, err)
	done, err := pessimistic.DeleteFile(context.Background(), f, nil)
	fmt.Println(done.How, err)
	// Output:
	// open handle DESK-7 true
	// 1 <nil>
	// deleted <nil>
}
