package emulator_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/aztest/emulator"
)

func TestBeyondItsMemoryTheEmulatorRefusesAndWhatIsDeletedMakesRoom(t *testing.T) {
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	const size = 8 << 20
	s := start(t, &emulator.Options{MaxMemory: int64(now.HeapAlloc) + 3*size})
	box := boxOf(t, s.Account())
	content := bytes.Repeat([]byte("x"), size)
	fill := func() (stored []string, err error) {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			if _, err = box.NewBlockBlobClient(name).UploadBuffer(t.Context(), content, nil); err != nil {
				return stored, err
			}
			stored = append(stored, name)
		}
		return stored, nil
	}
	for range 3 { // what was refused or deleted is forgotten
		stored, err := fill()
		var refused *azcore.ResponseError
		if !errors.As(err, &refused) || refused.StatusCode != http.StatusInsufficientStorage || refused.ErrorCode != "InsufficientStorage" || len(stored) == 0 {
			t.Fatalf("after %d blobs of %d bytes: %v, want 507", len(stored), size, err)
		}
		for _, name := range stored {
			if _, err := box.NewBlobClient(name).Delete(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestABodyThatStallsLosesItsConnection(t *testing.T) {
	t.Cleanup(emulator.SetStall(50 * time.Millisecond))
	s := start(t, nil)
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.Split(s.Account().BlobURL, "/")[2])
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	_, _ = connection.Write([]byte("PUT /devstoreaccount1/box/blob HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nonly this"))
	_ = connection.SetReadDeadline(time.Now().Add(30 * time.Second))
	if answer, err := io.ReadAll(connection); err != nil || len(answer) > 0 {
		t.Errorf("it answers %q, %v, want the end of the connection", answer, err)
	}
}

func TestAFaultOfNoOperationIsRefusedWithTheNearestName(t *testing.T) {
	for text, want := range map[string]string{
		"slow=5%@Put Blobs":      `"Put Blobs" is no operation: did you mean "Put Blob"?`,
		"slow=5%@put blob":       `did you mean "Put Blob"?`,
		"hang=1%@Renew Lease":    `is no operation`,
		"hang=1%@RenewBlobLease": `did you mean "Renew Blob Lease"?`,
		"hang=1%@xyzzy":          `"xyzzy" is no operation: give writes, or one of the REST reference, such as Put Blob`,
		"hang=1%@Put Message":    "",
		"hang=1%@writes":         "",
	} {
		_, err := emulator.ParseFaults(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
