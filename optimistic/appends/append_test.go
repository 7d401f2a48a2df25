package appends

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

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func logOf(s *aztest.Service) *appendblob.Client {
	return s.Container("box").NewAppendBlobClient("log")
}

// makeLog makes an append blob with content.
func makeLog(t *testing.T, s *aztest.Service, content string) *appendblob.Client {
	t.Helper()
	s.BlockBlob("box", "any") // makes the container
	client := logOf(s)
	if _, err := client.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if content != "" {
		if _, err := client.AppendBlock(t.Context(), optest.Body(content), nil); err != nil {
			t.Fatal(err)
		}
	}
	s.Reset()
	return client
}

func contentOf(t *testing.T, client *appendblob.Client) string {
	t.Helper()
	resp, err := client.DownloadStream(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestAnAppendReportsItsPosition(t *testing.T) {
	s := aztest.New(nil)
	client := makeLog(t, s, "one\n")
	res, err := Append(t.Context(), client, []byte("two\n"), nil)
	if err != nil || !res.Changed || res.Offset != 4 || res.End != 8 || res.ETag == "" {
		t.Fatalf("Append = %+v, %v", res, err)
	}
	optest.Requests(t, s, res.Result, 2)
	if got := s.Log()[1].Header.Get("X-Ms-Blob-Condition-Appendpos"); got != "4" {
		t.Errorf("appendpos = %q", got)
	}
	s.Reset()
	res, err = Append(t.Context(), client, []byte("three\n"), &AppendOptions{Position: res.End})
	if err != nil || res.Offset != 8 {
		t.Fatalf("Append = %+v, %v", res, err)
	}
	optest.Requests(t, s, res.Result, 1)
	s.Reset()
	res, err = Append(t.Context(), client, []byte("four\n"), &AppendOptions{Position: 8}) // a wrong belief
	if err != nil || res.Offset != 14 || res.Conflicts != 1 {
		t.Fatalf("Append = %+v, %v", res, err)
	}
	optest.Requests(t, s, res.Result, 3)
	if got := contentOf(t, client); got != "one\ntwo\nthree\nfour\n" {
		t.Errorf("content %q", got)
	}
	if res.ETag != *optest.PropertiesOf(t, client.BlobClient()).ETag {
		t.Errorf("ETag %s is not the blob's", res.ETag)
	}
}

func TestEveryAppendUnderEveryFault(t *testing.T) {
	type variant struct {
		name string
		run  func(ctx context.Context, c *appendblob.Client) (AppendResult, error)
	}
	line := []byte("line\n")
	variants := []variant{
		{"plain", func(ctx context.Context, c *appendblob.Client) (AppendResult, error) {
			return Append(ctx, c, line, nil)
		}},
		{"unique", func(ctx context.Context, c *appendblob.Client) (AppendResult, error) {
			return Append(ctx, c, line, &AppendOptions{Unique: true})
		}},
		{"record", func(ctx context.Context, c *appendblob.Client) (AppendResult, error) {
			return AppendRecord(ctx, c, line, nil)
		}},
		{"pinned", func(ctx context.Context, c *appendblob.Client) (AppendResult, error) {
			return AppendRecord(ctx, c, line, &AppendOptions{Position: 6, Pinned: true})
		}},
	}
	for _, v := range variants {
		for name, fault := range optest.Every(aztest.Op("Append Block")) {
			t.Run(v.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := aztest.New(nil)
					client := makeLog(t, s, "start\n")
					s.SetFaults(fault)
					res, err := v.run(t.Context(), client)
					s.SetFaults()
					s.Flush()
					n := strings.Count(contentOf(t, client), string(line))
					switch plain := v.name == "plain"; {
					case plain && fault.Kind == aztest.AnswerTwice:
						// Nothing shows that the block at the position is our own, as the doc comment says.
					case n != 1:
						t.Errorf("appended %d times: %+v, %v\n%v", n, res, err, s.Log())
					case err != nil && !(plain && errors.Is(err, optimistic.ErrOutcomeUnknown)):
						t.Errorf("err = %v\n%v", err, s.Log())
					case err == nil && (res.Offset != 6 || res.ETag == "" || res.ETag[0] == '@'):
						t.Errorf("Append = %+v", res)
					}
				})
			})
		}
	}
}

// TestAnotherBlockAtThePositionIsProof: the request is lost and a rival appends there.
func TestAnotherBlockAtThePositionIsProof(t *testing.T) {
	for name, rival := range map[string]string{"longer": "a rival's line\n", "shorter": "x", "as long": "LINE\n"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(nil)
				client := makeLog(t, s, "")
				s.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Writes, Count: 1})
				go func() {
					bubble.Sleep(time.Microsecond)
					if _, err := client.AppendBlock(context.Background(), optest.Body(rival), nil); err != nil {
						t.Error(err)
					}
				}()
				res, err := Append(t.Context(), client, []byte("line\n"), nil)
				if err != nil || res.Offset != int64(len(rival)) || res.Ambiguous != 1 || res.Resolved != 1 || res.Attempts != 2 {
					t.Fatalf("Append = %+v, %v\n%v", res, err, s.Log())
				}
				if got := contentOf(t, client); got != rival+"line\n" {
					t.Errorf("content %q", got)
				}
			})
		})
	}
}

// TestTheSameBytesAreProofOnlyWhenTheyAreUnique: a rival appends the very same line at the very same place.
func TestTheSameBytesAreProofOnlyWhenTheyAreUnique(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		client := makeLog(t, s, "")
		s.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Writes, Count: 1})
		go func() {
			bubble.Sleep(time.Microsecond)
			if _, err := client.AppendBlock(context.Background(), optest.Body("tick\n"), nil); err != nil {
				t.Error(err)
			}
		}()
		_, err := Append(t.Context(), client, []byte("tick\n"), nil)
		unknown, ok := errors.AsType[*optimistic.UnknownError](err)
		if !ok || !strings.Contains(err.Error(), "another appender may") || unknown.Base != "" {
			t.Errorf("err = %v, want unknown: the line may be the rival's", err)
		}
	})
}

func TestARecordIsFoundAfterOthersHaveAppended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		client := makeLog(t, s, "")
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		go func() {
			bubble.Sleep(time.Microsecond)
			for range 50 {
				if _, err := AppendRecord(context.Background(), logOf(s), []byte("rival"), nil); err != nil {
					t.Error(err)
				}
			}
		}()
		res, err := AppendRecord(t.Context(), client, []byte("ours"), nil)
		if err != nil || res.Offset != 0 || res.Resolved != 1 || res.ID == "" {
			t.Fatalf("AppendRecord = %+v, %v", res, err)
		}
		bubble.Sleep(time.Minute)
		var ids []string
		for r, err := range Records(strings.NewReader(contentOf(t, client))) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, r.ID)
		}
		if len(ids) != 51 || ids[0] != res.ID {
			t.Errorf("%d records, the first is %s, want %s", len(ids), ids[0], res.ID)
		}
	})
}

// TestNoRecordIsLostOrDoubled: many appenders, each with a client of its own, and everything that can go wrong.
func TestNoRecordIsLostOrDoubled(t *testing.T) {
	for seed := range int64(3) {
		synctest.Test(t, func(t *testing.T) {
			s := aztest.New(&aztest.Options{Seed: uint64(seed), Latency: optest.Latencies(seed)})
			client := makeLog(t, s, "")
			match := aztest.Op("Append Block")
			s.SetFaults(
				aztest.Fault{Kind: aztest.LoseAnswer, Match: match, Probability: 0.05},
				aztest.Fault{Kind: aztest.FailAfterCommit, Match: match, Probability: 0.03},
				aztest.Fault{Kind: aztest.LoseRequest, Match: match, Probability: 0.03},
				aztest.Fault{Kind: aztest.DelayCommit, Match: match, Probability: 0.03, Delay: 300 * time.Millisecond},
				aztest.Fault{Kind: aztest.AnswerTwice, Match: match, Probability: 0.03},
			)
			var mu sync.Mutex
			var wg sync.WaitGroup
			where := map[string]AppendResult{} // by content
			conflicts, resolved := 0, 0
			for me := range 8 {
				wg.Go(func() {
					c, position := logOf(s), int64(0)
					for n := range 25 {
						content := fmt.Sprintf("%d/%d", me, n)
						res, err := AppendRecord(context.Background(), c, []byte(content), &AppendOptions{Attempts: -1, Elapsed: -1, Position: position})
						if err != nil {
							t.Errorf("seed %d: %s: %v", seed, content, err)
							continue
						}
						position = res.End
						mu.Lock()
						where[content] = res
						conflicts, resolved = conflicts+res.Conflicts, resolved+res.Resolved
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			s.SetFaults()
			s.Flush()
			seen := 0
			for r, err := range Records(strings.NewReader(contentOf(t, client))) {
				if err != nil {
					t.Fatal(err)
				}
				seen++
				if res := where[string(r.Data)]; res.ID != r.ID || res.Offset != r.Offset {
					t.Errorf("seed %d: %s is record %s at %d, reported %s at %d", seed, r.Data, r.ID, r.Offset, res.ID, res.Offset)
				}
			}
			if seen != 8*25 {
				t.Errorf("seed %d: %d records, want %d", seed, seen, 8*25)
			}
			if conflicts == 0 || resolved == 0 {
				t.Errorf("seed %d: too tame: %d conflicts, %d resolved", seed, conflicts, resolved)
			}
		})
	}
}

func TestAMissingAppendBlobIsCreatedOnRequest(t *testing.T) {
	s := aztest.New(nil)
	s.BlockBlob("box", "any")
	client := logOf(s)
	for _, o := range []*AppendOptions{nil, {Position: 5}, {Pinned: true}} {
		if _, err := Append(t.Context(), client, []byte("x"), o); !errors.Is(err, optimistic.ErrNotFound) {
			t.Errorf("err = %v, want not found", err)
		}
	}
	s.Reset()
	res, err := Append(t.Context(), client, []byte("x"), &AppendOptions{Create: true, HTTPHeaders: &blob.HTTPHeaders{BlobContentType: new("text/plain")}})
	if err != nil || !res.Created || res.Offset != 0 {
		t.Fatalf("Append = %+v, %v", res, err)
	}
	optest.Requests(t, s, res.Result, 4)
	if p := optest.PropertiesOf(t, client.BlobClient()); *p.ContentType != "text/plain" {
		t.Errorf("Content-Type %s", *p.ContentType)
	}
	if _, err := Append(t.Context(), s.Container("none").NewAppendBlobClient("log"), []byte("x"), nil); !errors.Is(err, optimistic.ErrNotFound) {
		t.Errorf("err = %v, want not found", err)
	}
	optest.Put(t, s.BlockBlob("box", "block"), "x")
	if _, err := Append(t.Context(), s.Container("box").NewAppendBlobClient("block"), []byte("x"), nil); err == nil || !strings.Contains(err.Error(), "it is a block blob, and this operation writes an append blob") {
		t.Errorf("err = %v", err)
	}
}

func TestAPinnedAppendIsForOnePositionOnly(t *testing.T) {
	s := aztest.New(nil)
	client := makeLog(t, s, "start")
	for _, at := range []int64{0, 4, 6} {
		_, err := Append(t.Context(), client, []byte("x"), &AppendOptions{Position: at, Pinned: true})
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		if !ok || conflict.Reason != azerr.Position {
			t.Errorf("at %d: err = %v, want a conflict about the position", at, err)
		}
	}
	etag := *optest.PropertiesOf(t, client.BlobClient()).ETag
	if _, err := Append(t.Context(), client, []byte("x"), &AppendOptions{Conditions: optimistic.Conditions{IfMatch: etag}}); err != nil {
		t.Error(err)
	}
	s.Reset()
	_, err := Append(t.Context(), client, []byte("x"), &AppendOptions{Conditions: optimistic.Conditions{IfMatch: etag}})
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	if !ok || conflict.Base != etag || conflict.Reason != azerr.Changed || s.Requests() != 2 {
		t.Errorf("err = %v after %d requests, want a final conflict", err, s.Requests())
	}
	if got := contentOf(t, client); got != "startx" {
		t.Errorf("content %q", got)
	}
}

func TestAFullOrSealedBlobRefusesAppends(t *testing.T) {
	s := aztest.New(nil)
	client := makeLog(t, s, "start")
	if _, err := Append(t.Context(), client, []byte("12345"), &AppendOptions{MaxSize: 10}); err != nil {
		t.Fatal(err)
	}
	for _, position := range []int64{0, 10, 7} {
		_, err := Append(t.Context(), client, []byte("6"), &AppendOptions{MaxSize: 10, Position: position})
		if !errors.Is(err, ErrFull) || errors.Is(err, optimistic.ErrConflict) {
			t.Errorf("err = %v, want full", err)
		}
	}
	s.Reset()
	if _, err := client.Seal(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, position := range []int64{0, 10} {
		if _, err := Append(t.Context(), client, []byte("x"), &AppendOptions{Position: position}); !errors.Is(err, ErrSealed) {
			t.Errorf("err = %v, want sealed", err)
		}
	}
}
