package aztest_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"

	"github.com/azconc/azconc/pkg/aztest"
)

// allocated is how many bytes run allocates.
func allocated(run func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestContentIsHeldOnceAndReadWithoutACopy(t *testing.T) {
	const size = 32 << 20
	body := make([]byte, size)
	client := aztest.New(nil).BlockBlob("box", "blob")
	up := allocated(func() {
		if _, err := client.Upload(context.Background(), streaming.NopCloser(bytes.NewReader(body)), nil); err != nil {
			t.Fatal(err)
		}
	})
	if up > size*5/4 {
		t.Errorf("an upload of %d bytes allocates %d", size, up)
	}
	down := allocated(func() {
		resp, err := client.DownloadStream(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil {
			t.Fatal(n, err)
		}
	})
	if down > size/4 {
		t.Errorf("a download of %d bytes allocates %d", size, down)
	}
}

func TestCommittedBlocksShareTheContent(t *testing.T) {
	client := aztest.New(nil).BlockBlob("box", "blob")
	var ids []string
	for i := range 4 {
		id := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%03d", i))
		ids = append(ids, id)
		if _, err := client.StageBlock(t.Context(), id, content(fmt.Sprintf("block %d, ", i)), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.CommitBlockList(t.Context(), ids, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CommitBlockList(t.Context(), []string{ids[3], ids[1]}, nil); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, client); got != "block 3, block 1, " {
		t.Errorf("the service holds %q", got)
	}
}

// TestReadersOfAnAppendBlobKeepTheirVersion while it grows, also behind a copy of it that grows on its own.
func TestReadersOfAnAppendBlobKeepTheirVersion(t *testing.T) {
	s := aztest.New(nil)
	s.BlockBlob("box", "unused")
	log, fork := s.Container("box").NewAppendBlobClient("log"), s.Container("box").NewAppendBlobClient("fork")
	if _, err := log.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 100 {
		if _, err := log.AppendBlock(t.Context(), content("line\n"), nil); err != nil {
			t.Fatal(err)
		}
		if i == 49 {
			if _, err := fork.StartCopyFromURL(t.Context(), log.URL(), nil); err != nil {
				t.Fatal(err)
			}
			if _, err := fork.AppendBlock(t.Context(), content("fork\n"), nil); err != nil {
				t.Fatal(err)
			}
		}
		resp, err := log.DownloadStream(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer resp.Body.Close()
			if data, err := io.ReadAll(resp.Body); err != nil || string(data) != string(bytes.Repeat([]byte("line\n"), i+1)) {
				t.Errorf("reader %d sees %d bytes, %v", i, len(data), err)
			}
		})
	}
	wg.Wait()
	resp, err := fork.DownloadStream(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if want := string(bytes.Repeat([]byte("line\n"), 50)) + "fork\n"; err != nil || string(data) != want {
		t.Errorf("the copy holds %d bytes, %v", len(data), err)
	}
}
