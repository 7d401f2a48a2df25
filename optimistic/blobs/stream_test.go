package blobs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func noise(seed uint64, size int) []byte {
	var key [32]byte
	key[0] = byte(seed)
	b := make([]byte, size)
	_, _ = rand.NewChaCha8(key).Read(b)
	return b
}

func TestUploadAndDownloadCarryEveryByte(t *testing.T) {
	for _, size := range []int{0, 1, 99, 100, 101, 200, 1000, 1001} {
		s, client := optest.Quiet(t, "")
		want := noise(1, size)
		var told []int64
		res, err := Upload(t.Context(), client, bytes.NewReader(want), &UploadOptions{
			BlockSize: 100, Concurrency: 3, Metadata: map[string]string{"owner": "a"},
			Progress: func(n int64) { told = append(told, n) },
		})
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		blocks := (size + 99) / 100
		wantRequests := 1
		if size > 100 {
			wantRequests = blocks + 1
		}
		optest.Requests(t, s, res, wantRequests)
		if len(told) == 0 || told[len(told)-1] != int64(size) {
			t.Errorf("%d bytes: progress %v", size, told)
		}
		s.Reset()
		var got bytes.Buffer
		down, err := Download(t.Context(), client.BlobClient(), &got, &DownloadOptions{BlockSize: 100, Concurrency: 3})
		if err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%d bytes: came back as %d, %v", size, got.Len(), err)
		}
		wantRequests = max(1, blocks)
		if size == 0 {
			wantRequests = 2
		}
		if down.Requests != wantRequests || s.Requests() != wantRequests {
			t.Errorf("%d bytes: %d requests, want %d", size, down.Requests, wantRequests)
		}
		if down.ETag != res.ETag || down.Size != int64(size) || down.Metadata["owner"] != "a" || len(down.Metadata) != 1 {
			t.Errorf("%d bytes: %+v, uploaded as %s", size, down, res.ETag)
		}
	}
}

func TestUploadReplacesTheWholeBlob(t *testing.T) {
	_, client := optest.Quiet(t, "")
	if _, err := Upload(t.Context(), client, optest.Body("old"), &UploadOptions{Metadata: map[string]string{"old": "1"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Upload(t.Context(), client, optest.Body("new"), &UploadOptions{HTTPHeaders: &blob.HTTPHeaders{BlobContentType: new("text/plain")}}); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	res, err := Download(t.Context(), client.BlobClient(), &got, nil)
	if err != nil || got.String() != "new" || len(res.Metadata) != 0 || *res.Headers.BlobContentType != "text/plain" {
		t.Errorf("%q %+v %v", got.String(), res, err)
	}
}

// TestTheCommitCarriesTheCondition: the SDK's own uploads drop it when they stage blocks.
func TestTheCommitCarriesTheCondition(t *testing.T) {
	s, client := optest.Quiet(t, "old")
	base := optest.ETagOf(t, client)
	s.Reset()
	if _, err := Upload(t.Context(), client, optest.Body("0123456789"), &UploadOptions{BlockSize: 3, Conditions: optimistic.Conditions{IfMatch: base}}); err != nil {
		t.Fatal(err)
	}
	log := s.Log()
	last := log[len(log)-1]
	if last.Op != "Put Block List" || last.Header.Get("If-Match") != string(base) {
		t.Errorf("last request %v with If-Match %q", last, last.Header.Get("If-Match"))
	}
}

func TestAStaleUploadFailsBeforeItsBytesAreSent(t *testing.T) {
	s, client := optest.Quiet(t, "old")
	for name, c := range map[string]optimistic.Conditions{"stale": {IfMatch: `"0x1"`}, "exists": {IfNoneMatch: "*"}} {
		s.Reset()
		res, err := Upload(t.Context(), client, strings.NewReader("0123456789"), &UploadOptions{BlockSize: 3, Conditions: c})
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		if !ok || conflict.Current != optest.ETagOf(t, client) || errors.Is(err, optimistic.ErrExists) != (name == "exists") {
			t.Errorf("%s: %v", name, err)
		}
		if res.Requests != 1 {
			t.Errorf("%s: %d requests, want one look", name, res.Requests)
		}
	}
}

func TestAnUploadThatLosesTheRaceIsAConflict(t *testing.T) {
	s, client := optest.Quiet(t, "old")
	base := optest.ETagOf(t, client)
	// A slow reader: the rival writes while the blocks are staged.
	content := io.MultiReader(strings.NewReader("012345678"), readerFunc(func([]byte) (int, error) {
		optest.Put(t, client, "rival")
		return 0, io.EOF
	}))
	_, err := Upload(t.Context(), client, content, &UploadOptions{BlockSize: 3, Conditions: optimistic.Conditions{IfMatch: base}, SendOptions: optimistic.SendOptions{ConfirmConflicts: optimistic.ConfirmNever}})
	if !errors.Is(err, optimistic.ErrConflict) {
		t.Errorf("err = %v", err)
	}
	if got := optest.Get(t, client); got != "rival" {
		t.Errorf("content = %q, want the rival's", got)
	}
	_ = s
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestBlocksDiscardedByAnotherCommitAreAConflict: the service drops staged blocks on any commit, and answers InvalidBlockList.
func TestBlocksDiscardedByAnotherCommitAreAConflict(t *testing.T) {
	_, client := optest.Quiet(t, "")
	staged := make(chan struct{})
	content := io.MultiReader(strings.NewReader("012345678"), readerFunc(func([]byte) (int, error) {
		<-staged
		optest.Put(t, client, "rival")
		return 0, io.EOF
	}))
	_, err := Upload(t.Context(), client, content, &UploadOptions{BlockSize: 3, Progress: func(n int64) {
		if n == 9 {
			close(staged)
		}
	}})
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	if !ok || conflict.Reason != azerr.BlockList {
		t.Errorf("err = %v, want a conflict over the blocks", err)
	}
	if got := optest.Get(t, client); got != "rival" {
		t.Errorf("content = %q, want the rival's", got)
	}
}

func TestAReaderThatFailsEndsTheUpload(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, before := range []string{"", "01234567"} {
		_, client := optest.Quiet(t, "")
		content := io.MultiReader(strings.NewReader(before), readerFunc(func([]byte) (int, error) { return 0, broken }))
		if _, err := Upload(t.Context(), client, content, &UploadOptions{BlockSize: 3}); !errors.Is(err, broken) {
			t.Errorf("after %q: %v", before, err)
		}
	}
}

func TestUploadHoldsABoundedNumberOfBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return time.Second }})
		client := s.BlockBlob("box", "big")
		read := 0
		content := readerFunc(func(p []byte) (int, error) {
			if read >= 100_000 {
				return 0, io.EOF
			}
			read += len(p)
			return len(p), nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := Upload(ctx, client, content, &UploadOptions{BlockSize: 1000, Concurrency: 3})
			done <- err
		}()
		bubble.Sleep(500 * time.Millisecond) // nothing has been answered yet
		synctest.Wait()
		if read > 5*1000+1000 {
			t.Errorf("%d bytes were read ahead, want at most 5 blocks", read)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
	})
}

// changing writes another version each time a range beyond the first is asked for, until it has done so n times.
func changing(t *testing.T, s *aztest.Service, name string, versions [][]byte) func() {
	client := s.BlockBlob("box", name)
	var mu sync.Mutex
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if len(versions) > 0 {
			if _, err := client.Upload(context.Background(), streaming.NopCloser(bytes.NewReader(versions[0])), nil); err != nil {
				t.Error(err)
			}
			versions = versions[1:]
		}
	}
}

// watcher changes the blob after the first write to it.
type watcher struct {
	bytes.Buffer
	change func()
}

func (w *watcher) Write(p []byte) (int, error) {
	w.change()
	return w.Buffer.Write(p)
}

// TestAReadReturnsOneWholeVersion reads a blob of 64 MiB in ranges while another writer replaces it.
func TestAReadReturnsOneWholeVersion(t *testing.T) {
	size := 64 << 20
	if testing.Short() {
		size = 16 << 20
	}
	v1, v2 := noise(1, size), noise(2, size)
	s := aztest.New(nil)
	client := s.BlockBlob("box", "big")
	put := func(b []byte) {
		if _, err := client.Upload(t.Context(), streaming.NopCloser(bytes.NewReader(b)), nil); err != nil {
			t.Fatal(err)
		}
	}
	put(v1)
	t.Run("restarted", func(t *testing.T) {
		put(v1)
		w := &watcher{change: changing(t, s, "big", [][]byte{v2})}
		res, err := Download(t.Context(), client.BlobClient(), w, &DownloadOptions{Restart: func() error { w.Reset(); return nil }})
		if err != nil || res.Restarts != 1 || res.Size != int64(size) {
			t.Fatalf("Download = %+v, %v", res, err)
		}
		if sha256.Sum256(w.Bytes()) != sha256.Sum256(v2) {
			t.Error("the content is neither version, whole")
		}
	})
	t.Run("refused", func(t *testing.T) {
		put(v1)
		w := &watcher{change: changing(t, s, "big", [][]byte{v2})}
		_, err := Download(t.Context(), client.BlobClient(), w, nil)
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		if !ok || conflict.Op != "read" || conflict.Resource != "box/big" {
			t.Errorf("err = %v, want a conflict", err)
		}
	})
	t.Run("changing for ever", func(t *testing.T) {
		put(v1)
		w := &watcher{change: changing(t, s, "big", [][]byte{v2, v1, v2, v1, v2, v1})}
		res, err := Download(t.Context(), client.BlobClient(), w, &DownloadOptions{Restart: func() error { w.Reset(); return nil }})
		if !errors.Is(err, optimistic.ErrConflict) || res.Restarts != 3 {
			t.Errorf("Download = %+v, %v", res, err)
		}
	})
	t.Run("shrunk", func(t *testing.T) {
		put(v1)
		w := &watcher{change: changing(t, s, "big", [][]byte{[]byte("x")})}
		_, err := Download(t.Context(), client.BlobClient(), w, nil)
		if !errors.Is(err, optimistic.ErrConflict) {
			t.Errorf("err = %v, want a conflict", err)
		}
	})
}

func TestDownloadConditions(t *testing.T) {
	s, client := optest.Quiet(t, "content")
	etag := optest.ETagOf(t, client)
	for name, tt := range map[string]struct {
		c    optimistic.Conditions
		want error
	}{
		"same":         {optimistic.Conditions{IfMatch: etag}, nil},
		"other":        {optimistic.Conditions{IfMatch: `"0x1"`}, optimistic.ErrConflict},
		"not modified": {optimistic.Conditions{IfNoneMatch: etag}, ErrNotModified},
		"modified":     {optimistic.Conditions{IfNoneMatch: `"0x1"`}, nil},
		"tags":         {optimistic.Conditions{IfTags: `"a" = 'b'`}, optimistic.ErrConflict},
	} {
		var got bytes.Buffer
		_, err := Download(t.Context(), client.BlobClient(), &got, &DownloadOptions{Conditions: tt.c})
		if !errors.Is(err, tt.want) || (err == nil) != (got.String() == "content") {
			t.Errorf("%s: %q, %v", name, got.String(), err)
		}
	}
	s.Reset()
	for _, c := range []optimistic.Conditions{{IfMatch: "0x1"}, {IfNoneMatch: "0x1"}, {IfNoneMatch: "*"}} {
		if _, err := Download(t.Context(), client.BlobClient(), io.Discard, &DownloadOptions{Conditions: c}); err == nil || s.Requests() > 0 {
			t.Errorf("%+v: %v after %v", c, err, s.Log())
		}
	}
	if _, err := Download(t.Context(), s.BlockBlob("box", "nothing").BlobClient(), io.Discard, nil); !errors.Is(err, optimistic.ErrNotFound) {
		t.Errorf("missing: %v", err)
	}
}

func TestDownloadGoesThroughFaults(t *testing.T) {
	for name, fault := range optest.Every(nil) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, "0123456789")
				fault.Skip = 1 // in the middle
				s.SetFaults(fault)
				var got bytes.Buffer
				_, err := Download(t.Context(), client.BlobClient(), &got, &DownloadOptions{BlockSize: 3, SendOptions: optimistic.SendOptions{TryTimeout: 30 * time.Second}})
				if err != nil || got.String() != "0123456789" {
					t.Errorf("%q, %v", got.String(), err)
				}
			})
		})
	}
}

func TestAnOutputThatFailsEndsTheDownload(t *testing.T) {
	_, client := optest.Quiet(t, "0123456789")
	full := errors.New("no space left")
	w := writerFunc(func(p []byte) (int, error) { return 0, full })
	if _, err := Download(t.Context(), client.BlobClient(), w, &DownloadOptions{BlockSize: 3}); !errors.Is(err, full) {
		t.Errorf("err = %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
