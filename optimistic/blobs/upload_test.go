package blobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic/pages"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestABlobOfAnotherTypeIsNotReplaced: aztest lets a write change the type, as Azurite does.
func TestABlobOfAnotherTypeIsNotReplaced(t *testing.T) {
	s := aztest.New(nil)
	s.BlockBlob("box", "x")
	box := s.Container("box")
	if _, err := box.NewAppendBlobClient("append").Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := box.NewPageBlobClient("pages").Create(t.Context(), 512, nil); err != nil {
		t.Fatal(err)
	}
	block := optest.Put(t, s.BlockBlob("box", "block"), "x")
	ran := false
	for name, tt := range map[string]struct {
		run  func(name string) error
		is   blob.BlobType
		sent int
	}{
		"append/update": {func(name string) error {
			_, err := optimistic.Update(t.Context(), NewBytes(s.BlockBlob("box", name)), func(_ context.Context, b *[]byte) error {
				ran = true
				*b = []byte("new")
				return nil
			}, nil)
			return err
		}, blob.BlobTypeAppendBlob, 1},
		"pages/replace": {func(name string) error {
			target := NewBytes(s.BlockBlob("box", name))
			v, err := optimistic.Read(t.Context(), target, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = optimistic.Replace(t.Context(), target, v, []byte("new"), nil)
			return err
		}, blob.BlobTypePageBlob, 1},
		"append/put if it is at the version": {func(name string) error {
			_, err := Upload(t.Context(), s.BlockBlob("box", name), optest.Body("new"), &UploadOptions{Conditions: optimistic.Conditions{IfMatch: optest.ETagOf(t, s.BlockBlob("box", name))}})
			return err
		}, blob.BlobTypeAppendBlob, 2},
		"pages/put that looks first": {func(name string) error {
			_, err := Upload(t.Context(), s.BlockBlob("box", name), optest.Body("new"), &UploadOptions{LookFirst: true})
			return err
		}, blob.BlobTypePageBlob, 1},
		"append/put in blocks that looks first": {func(name string) error {
			_, err := Upload(t.Context(), s.BlockBlob("box", name), optest.Body("new"), &UploadOptions{LookFirst: true, BlockSize: 1})
			return err
		}, blob.BlobTypeAppendBlob, 1},
		"block/create pages at the version": {func(name string) error {
			_, err := pages.Create(t.Context(), box.NewPageBlobClient(name), 512, &pages.CreateOptions{Conditions: optimistic.Conditions{IfMatch: block}})
			return err
		}, blob.BlobTypeBlockBlob, 1},
	} {
		t.Run(name, func(t *testing.T) {
			name, _, _ := strings.Cut(name, "/")
			s.Reset()
			err := tt.run(name)
			wrong, ok := errors.AsType[*optimistic.TypeError](err)
			if !ok || wrong.Type != string(tt.is) || !strings.Contains(err.Error(), "box/"+name) || !strings.Contains(err.Error(), "delete it first") {
				t.Errorf("err = %v", err)
			}
			if s.Requests() != tt.sent {
				t.Errorf("%d requests, want %d: %v", s.Requests(), tt.sent, s.Log())
			}
			for _, r := range s.Log() {
				if aztest.Writes(&r) {
					t.Errorf("%v was sent", r)
				}
			}
		})
	}
	if ran {
		t.Error("the change was run in vain")
	}
	if v, err := optimistic.Read(t.Context(), NewBytes(s.BlockBlob("box", "append")), nil); err != nil || len(v.Value) != 0 {
		t.Errorf("reading an append blob: %+v, %v", v, err)
	}
}

// TestAnUploadWithIfMatchPreservesTheLineage: the history of others survives, so that they can resolve their writes.
func TestAnUploadWithIfMatchPreservesTheLineage(t *testing.T) {
	for name, upload := range map[string]func(t *testing.T, s *aztest.Service, on optimistic.Conditions) (optimistic.Result, error){
		"put": func(t *testing.T, s *aztest.Service, on optimistic.Conditions) (optimistic.Result, error) {
			return Upload(t.Context(), s.BlockBlob("box", "n.json"), optest.Body(`{"n":100}`), &UploadOptions{Conditions: on})
		},
		"put in blocks": func(t *testing.T, s *aztest.Service, on optimistic.Conditions) (optimistic.Result, error) {
			return Upload(t.Context(), s.BlockBlob("box", "n.json"), optest.Body(`{"n":100}`), &UploadOptions{Conditions: on, BlockSize: 3})
		},
		"commit": func(t *testing.T, s *aztest.Service, on optimistic.Conditions) (optimistic.Result, error) {
			if _, err := StageBlock(t.Context(), s.BlockBlob("box", "n.json"), "a", []byte(`{"n":100}`), nil); err != nil {
				return optimistic.Result{}, err
			}
			return CommitBlocks(t.Context(), s.BlockBlob("box", "n.json"), []string{"a"}, &UploadOptions{Conditions: on})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, `{"n":0}`)
				target := NewJSON[optest.Counter](client)
				s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
				var other optimistic.Result
				var otherErr error
				go func() {
					bubble.Sleep(time.Microsecond) // the update was applied, and waits to be sent again
					if other, otherErr = upload(t, s, optimistic.Conditions{IfMatch: optest.ETagOf(t, client)}); otherErr != nil {
						t.Errorf("upload: %+v, %v", other, otherErr)
					}
				}()
				res, err := optimistic.Update(t.Context(), target, optest.Increment, nil)
				if err != nil || res.Resolved != 1 {
					t.Errorf("Update = %+v, %v: the upload has removed its entry", res, err)
				}
				if got := optest.Count(t, client); got != 100 {
					t.Errorf("n = %d, want the upload's 100", got)
				}
			})
		})
	}
}

// TestUploadsWithIfMatchSeldomEndUnknown: clients replace a blob in turn, by If-Match, while responses are lost. Of 720 uploads 2.8 ± 1.9
// are unknown, and at most 3 % may be.
func TestUploadsWithIfMatchSeldomEndUnknown(t *testing.T) {
	for _, blockSize := range []int64{0, 3} {
		t.Run(fmt.Sprintf("blocks of %d", blockSize), func(t *testing.T) {
			var mu sync.Mutex
			operations, unknown, applied, conflicts := 0, 0, 0, 0
			seeds := int64(3)
			if testing.Short() {
				seeds = 1
			}
			for seed := range seeds {
				synctest.Test(t, func(t *testing.T) {
					s := aztest.New(&aztest.Options{Seed: uint64(seed), Latency: optest.Latencies(seed)})
					optest.Put(t, s.BlockBlob("box", "n.json"), `{"n":0}`)
					commits := aztest.Op("Put Blob", "Put Block List")
					s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: commits, Probability: 0.2})
					var wg sync.WaitGroup
					for range 8 {
						wg.Go(func() {
							client := s.BlockBlob("box", "n.json")
							for range 30 {
								v, err := optimistic.Read(t.Context(), NewJSON[optest.Counter](client), nil)
								if err != nil {
									t.Error(err)
									return
								}
								_, err = Upload(t.Context(), client, optest.Body(fmt.Sprintf(`{"n":%d}`, v.Value.N+1)), &UploadOptions{
									Conditions: optimistic.Conditions{IfMatch: v.ETag}, BlockSize: blockSize,
								})
								mu.Lock()
								operations++
								switch {
								case err == nil:
									applied++
								case errors.Is(err, optimistic.ErrOutcomeUnknown):
									unknown++
								case errors.Is(err, optimistic.ErrConflict):
									conflicts++
								default:
									t.Errorf("seed %d: %v", seed, err)
								}
								mu.Unlock()
							}
						})
					}
					wg.Wait()
					s.SetFaults()
					mu.Lock()
					defer mu.Unlock()
					if got := optest.Count(t, s.BlockBlob("box", "n.json")); got < applied || got > applied+unknown {
						t.Errorf("seed %d: n = %d after %d successes and %d unknown", seed, got, applied, unknown)
					}
					applied = 0
				})
			}
			t.Logf("%d uploads: %d conflicts, %d unknown", operations, conflicts, unknown)
			if conflicts == 0 || unknown > operations*3/100 {
				t.Errorf("%d of %d are unknown after %d conflicts, want at most 3 %%", unknown, operations, conflicts)
			}
		})
	}
}

// TestTheLastOfTwoUploadsWins: both have staged their blocks when the first commits, and its commit discards the other's.
func TestTheLastOfTwoUploadsWins(t *testing.T) {
	for name, tt := range map[string]struct {
		content io.Reader
		opts    UploadOptions
		wins    bool
	}{
		"from a file":                     {strings.NewReader("mine, mine"), UploadOptions{}, true},
		"whatever is there":               {strings.NewReader("mine, mine"), UploadOptions{Conditions: optimistic.Conditions{IfMatch: "*"}}, true},
		"from a pipe":                     {io.MultiReader(strings.NewReader("mine, mine")), UploadOptions{}, false},
		"on the condition that it is new": {strings.NewReader("mine, mine"), UploadOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}}, false},
		"on the condition of its tags":    {strings.NewReader("mine, mine"), UploadOptions{Conditions: optimistic.Conditions{IfTags: `"a" = 'b'`}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, "")
				if tt.opts.Conditions.IfMatch != "" {
					optest.Put(t, client, "old")
				}
				tt.opts.BlockSize = 3
				tt.opts.ConfirmConflicts = optimistic.ConfirmNever // nothing repeats requests here, and uploads without a condition leave no history
				staged := 0
				tt.opts.Progress = func(int64) {
					if staged++; staged == 4 {
						if _, err := Upload(t.Context(), client, optest.Body("theirs"), &UploadOptions{BlockSize: 3}); err != nil {
							t.Error(err)
						}
					}
				}
				res, err := Upload(t.Context(), client, tt.content, &tt.opts)
				if !tt.wins {
					if !errors.Is(err, optimistic.ErrConflict) || optest.Get(t, client) != "theirs" {
						t.Errorf("Upload = %+v, %v: the blob holds %q", res, err, optest.Get(t, client))
					}
					return
				}
				if err != nil || optest.Get(t, client) != "mine, mine" || res.ETag != optest.ETagOf(t, client) || res.Attempts != 2 || res.Conflicts != 1 {
					t.Errorf("Upload = %+v, %v: the blob holds %q", res, err, optest.Get(t, client))
				}
				_ = s
			})
		})
	}
}

// TestConcurrentUploadsAllSucceed: without a condition nobody loses.
func TestConcurrentUploadsAllSucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: optest.Latencies(7)})
		s.BlockBlob("box", "n.json")
		var wg sync.WaitGroup
		again := 0
		var mu sync.Mutex
		for i := range 8 {
			wg.Go(func() {
				res, err := Upload(t.Context(), s.BlockBlob("box", "n.json"), strings.NewReader(strings.Repeat(fmt.Sprint(i), 10)), &UploadOptions{BlockSize: 3})
				if err != nil {
					t.Errorf("upload %d: %+v, %v", i, res, err)
				}
				mu.Lock()
				defer mu.Unlock()
				again += res.Conflicts
			})
		}
		wg.Wait()
		if got := optest.Get(t, s.BlockBlob("box", "n.json")); len(got) != 10 || strings.Trim(got, got[:1]) != "" {
			t.Errorf("the blob holds %q", got)
		}
		if again == 0 {
			t.Error("the workload is too tame: no commit discarded the blocks of another upload")
		}
	})
}

func TestAnUploadThatLooksFirstReportsWhetherItCreates(t *testing.T) {
	s, client := optest.Quiet(t, "")
	for i, want := range []bool{true, false} {
		s.Reset()
		res, err := Upload(t.Context(), client, optest.Body("x"), &UploadOptions{LookFirst: true})
		if err != nil || res.Created != want {
			t.Errorf("upload %d: %+v, %v, want created %t", i, res, err, want)
		}
		optest.Requests(t, s, res, 2)
	}
	s.Reset()
	res, err := Upload(t.Context(), client, optest.Body("y"), &UploadOptions{Conditions: optimistic.Conditions{IfMatch: `"0x1"`}})
	if conflict, ok := errors.AsType[*optimistic.ConflictError](err); !ok || conflict.Reason != azerr.Changed || conflict.Current == "" {
		t.Errorf("a stale upload: %v", err)
	}
	optest.Requests(t, s, res, 1) // it is not sent
}
