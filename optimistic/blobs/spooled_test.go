package blobs

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

func (v Content) whole(t *testing.T) []byte {
	t.Helper()
	if v.Path == "" {
		return v.Data
	}
	data, err := os.ReadFile(v.Path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// inFile puts data into a file.
func inFile(t *testing.T, dir string, data []byte) Content {
	t.Helper()
	file, err := os.CreateTemp(dir, "new-")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = file.Write(data); err != nil || file.Close() != nil {
		t.Fatal(err)
	}
	return Content{Path: file.Name()}
}

func TestSpooledContentIsUpdatedLikeBytes(t *testing.T) {
	for _, size := range []int{0, 5, spoolAbove, spoolAbove + 1, 3 << 20} {
		s, client := optest.Quiet(t, "")
		dir := t.TempDir()
		was, is := noise(1, size), noise(2, size+1)
		if _, err := Upload(t.Context(), client, bytes.NewReader(was), &UploadOptions{Metadata: map[string]string{"owner": "a"}, Tags: map[string]string{"k": "v"}}); err != nil {
			t.Fatal(err)
		}
		s.Reset()
		target := Spooled{Blob: NewBytes(client), Dir: dir}
		update := func(next Content) (optimistic.Result, error) {
			return optimistic.Update(t.Context(), target, func(_ context.Context, content *Content) error {
				if got := content.whole(t); !bytes.Equal(got, was) {
					t.Errorf("%d bytes: the change got %d others", size, len(got))
				}
				if content.Path != "" {
					if info, err := os.Stat(content.Path); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 || filepath.Dir(content.Path) != dir {
						t.Errorf("%v, %v", info, err)
					}
				}
				if (content.Path != "") != (size > spoolAbove) {
					t.Errorf("%d bytes are in %q", size, content.Path)
				}
				*content = next
				return nil
			}, nil)
		}
		for _, same := range []Content{{Data: was}, inFile(t, dir, was)} {
			if res, err := update(same); err != nil || res.Changed || s.Requests() != 2 { // of the tags, too
				t.Errorf("%d bytes, unchanged: %+v, %v", size, res, err)
			}
			s.Reset()
		}
		res, err := update(inFile(t, dir, is))
		if err != nil || !res.Changed {
			t.Errorf("%d bytes: %+v, %v", size, res, err)
		}
		optest.Requests(t, s, res, 3)
		var got bytes.Buffer
		down, err := Download(t.Context(), client.BlobClient(), &got, nil)
		if err != nil || !bytes.Equal(got.Bytes(), is) || down.Metadata["owner"] != "a" {
			t.Errorf("%d bytes: %d stored, %+v, %v", size, got.Len(), down, err)
		}
		if tags, err := client.GetTags(t.Context(), nil); err != nil || len(tags.BlobTagSet) != 1 {
			t.Errorf("%d bytes: tags %v, %v", size, tags.BlobTagSet, err)
		}
	}
}

// Whatever happens to a request, a change in files is applied once and whole, on exactly what was stored.
func TestASpooledUpdateSurvivesAnyFaultOfAnyRequest(t *testing.T) {
	line := strings.Repeat("x", 1<<20)
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.LoseRequest, aztest.CutAnswer, aztest.Throttle, aztest.FailAfterCommit, aztest.AnswerTwice, aztest.Page, aztest.Rechunk, aztest.Refuse} {
		for k := range 2 {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(nil)
				client := s.BlockBlob("box", "f")
				dir := t.TempDir()
				if _, err := Upload(t.Context(), client, strings.NewReader(line), nil); err != nil {
					t.Fatal(err)
				}
				s.SetFaults(aztest.Fault{Kind: kind, Skip: k, Count: 1})
				other := true
				grow := func(_ context.Context, content *Content) error {
					base := content.whole(t)
					if other { // another writer comes in between, once
						other = false
						s.SetFaults()
						_, err := optimistic.Update(t.Context(), NewBytes(client), func(_ context.Context, content *[]byte) error {
							*content = []byte(line + line)
							return nil
						}, nil)
						if err != nil {
							t.Error(err)
						}
						s.SetFaults(aztest.Fault{Kind: kind, Skip: k, Count: 1})
					}
					*content = inFile(t, dir, append(base, "!"...))
					return nil
				}
				res, err := optimistic.Update(t.Context(), Spooled{Blob: NewBytes(client), Dir: dir}, grow, nil)
				s.SetFaults()
				var got bytes.Buffer
				_, down := Download(t.Context(), client.BlobClient(), &got, nil)
				if err != nil || down != nil || got.String() != line+line+"!" || res.Conflicts != 1 {
					t.Errorf("%s at %d: %+v, %v; %d bytes, %v", kind, k, res, err, got.Len(), down)
				}
			})
		}
	}
}

func TestSpooledContentThatCannotBeKeptOrReadIsAnError(t *testing.T) {
	s, client := optest.Quiet(t, "")
	was := noise(1, spoolAbove+1)
	if _, err := Upload(t.Context(), client, bytes.NewReader(was), nil); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		dir  string
		next Content
		want string
	}{
		"no directory":      {"", Content{}, "Spooled.Dir is empty"},
		"missing directory": {filepath.Join(dir, "missing"), Content{}, "no such file"},
		"both":              {dir, Content{Data: []byte("a"), Path: "b"}, "both Data and Path"},
		"missing content":   {dir, Content{Path: filepath.Join(dir, "gone")}, "no such file"},
	} {
		s.Reset()
		res, err := optimistic.Update(t.Context(), Spooled{Blob: NewBytes(client), Dir: tt.dir}, func(_ context.Context, content *Content) error {
			*content = tt.next
			return nil
		}, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) && runtime.GOOS != "windows" || res.Changed || s.Requests() > 1 {
			t.Errorf("%s: %+v, %v after %d requests", name, res, err, s.Requests())
		}
	}
	small := NewBytes(client)
	small.MaxSize = spoolAbove
	if _, err := optimistic.Update(t.Context(), Spooled{Blob: small, Dir: dir}, func(context.Context, *Content) error { return nil }, nil); err == nil || !strings.Contains(err.Error(), "MaxSize") {
		t.Errorf("too large: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 { // of the change that ended with a missing content, and of "both"
		for _, one := range left {
			_ = os.Remove(filepath.Join(dir, one.Name()))
		}
		if len(left) != 2 {
			t.Errorf("%d files are left", len(left))
		}
	}
}

// discarding is a service that has one blob, and forgets what it is sent.
type discarding struct {
	holds []byte
	put   int64
}

func (d *discarding) Do(q *http.Request) (*http.Response, error) {
	r := &http.Response{StatusCode: http.StatusOK, Request: q, Header: http.Header{}, ContentLength: int64(len(d.holds)), Body: io.NopCloser(bytes.NewReader(d.holds))}
	for name, value := range map[string]string{"x-ms-request-id": "1", "x-ms-version": "2021-12-02", "ETag": `"0x1"`, "x-ms-blob-type": "BlockBlob", "Content-Length": strconv.Itoa(len(d.holds))} {
		r.Header.Set(name, value)
	}
	if q.Method == http.MethodPut {
		r.StatusCode, r.ContentLength, r.Body = http.StatusCreated, 0, http.NoBody
		n, err := io.Copy(io.Discard, q.Body)
		d.put = n
		return r, err
	}
	return r, nil
}

// An update of bytes in memory takes as much memory as the content; one of spooled content takes a buffer.
func TestASpooledUpdateTakesABuffer(t *testing.T) {
	const size = 16 << 20
	service := &discarding{holds: noise(1, size)}
	client, err := blockblob.NewClientWithNoCredential("https://"+aztest.Account+".blob.example/box/f", &blockblob.ClientOptions{ClientOptions: policy.ClientOptions{Transport: service}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	next := inFile(t, dir, noise(2, size))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = optimistic.Update(t.Context(), Spooled{Blob: NewBytes(client), Dir: dir}, func(_ context.Context, content *Content) error {
		*content = next
		return nil
	}, nil)
	runtime.ReadMemStats(&after)
	if spent := after.TotalAlloc - before.TotalAlloc; err != nil || service.put != size || spent > 1<<20 {
		t.Errorf("%d of %d bytes written with %d bytes of memory, %v", service.put, size, spent, err)
	}
}
