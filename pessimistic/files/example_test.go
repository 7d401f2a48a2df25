package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pkg/aztest"
)

// A read-modify-write of a file. FileREST has no conditions, so it is done under a lease of the file.
func ExampleUpdate() {
	f := aztest.New(nil).File("share", "counter.txt")
	_, _ = files.Upload(context.Background(), f, strings.NewReader("41"), 2, &files.UploadOptions{Create: true})

	done, err := files.Update(context.Background(), f, func(_ context.Context, old []byte) ([]byte, error) {
		n, err := strconv.Atoi(string(old))
		return strconv.AppendInt(nil, int64(n+1), 10), err
	}, nil)
	fmt.Println(done.Changed, done.Requests, err)

	_, err = files.Download(context.Background(), f, os.Stdout, nil)
	fmt.Println("", err)
	// Output:
	// true 6 <nil>
	// 42 <nil>
}

// An SMB client has the file open. Delete does not wait for it here, and the error names the client.
func ExampleDelete() {
	service := aztest.New(nil)
	f := service.File("share", "report.docx")
	_, _ = f.Create(context.Background(), 1, nil)
	service.OpenSMB("share", "report.docx", aztest.SMBHandle{ID: "1", ClientName: "DESK-7"})

	_, err := files.Delete(context.Background(), f, &files.DeleteOptions{Wait: &files.WaitOptions{MaxWait: time.Millisecond}})
	if used, ok := errors.AsType[*files.InUseError](err); ok {
		fmt.Println(used.Reason, used.Handles[0].ClientName, errors.Is(err, pessimistic.ErrHeld))
	}

	closed, err := files.ForceClose(context.Background(), f, []string{files.AllHandles}, nil)
	fmt.Println(closed.Closed, err)
	done, err := files.Delete(context.Background(), f, nil)
	fmt.Println(done.How, err)
	// Output:
	// open handle DESK-7 true
	// 1 <nil>
	// deleted <nil>
}
