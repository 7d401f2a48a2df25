package pessimistic_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

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
