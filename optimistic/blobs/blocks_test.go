package blobs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/azconc/azconc/optimistic/pages"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

// staged stages blocks of one byte, named like the byte.
func staged(ctx context.Context, client *blockblob.Client, names ...string) error {
	for _, name := range names {
		if _, err := StageBlock(ctx, client, name, []byte(name), nil); err != nil {
			return err
		}
	}
	return nil
}

func TestBlocksBecomeContentInTheOrderOfTheCommit(t *testing.T) {
	s, client := optest.Quiet(t, "")
	if err := staged(t.Context(), client, "a", "b", "c"); err != nil {
		t.Fatal(err)
	}
	blocks, at, err := ListBlocks(t.Context(), client, blockblob.BlockListTypeAll, nil)
	if err != nil || at.Exists || len(blocks) != 3 || blocks[0] != (Block{ID: "a", Size: 1}) {
		t.Errorf("staged: %+v, %+v, %v", blocks, at, err)
	}
	s.Reset()
	res, err := CommitBlocks(t.Context(), client, []string{"c", "a"}, &UploadOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}, Metadata: map[string]string{"k": "v"}})
	if err != nil || !res.Created || optest.Get(t, client) != "ca" {
		t.Errorf("%+v, %v: %q", res, err, optest.Get(t, client))
	}
	if res.Requests != 1 {
		t.Errorf("%d requests, want 1", res.Requests)
	}
	blocks, at, err = ListBlocks(t.Context(), client, blockblob.BlockListTypeAll, nil)
	if err != nil || at.ETag != res.ETag || !slices.Equal(blocks, []Block{{"c", 1, true}, {"a", 1, true}}) {
		t.Errorf("committed: %+v, %+v, %v", blocks, at, err)
	}
	if _, err := CommitBlocks(t.Context(), client, []string{"a", "a", "c"}, &UploadOptions{Conditions: optimistic.Conditions{IfMatch: res.ETag}}); err != nil || optest.Get(t, client) != "aac" {
		t.Errorf("of what the blob has already: %v, %q", err, optest.Get(t, client))
	}
}

func TestAMissingBlockIsAConflict(t *testing.T) {
	_, client := optest.Quiet(t, "")
	if err := staged(t.Context(), client, "a", "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := CommitBlocks(t.Context(), client, []string{"a"}, nil); err != nil { // discards b
		t.Fatal(err)
	}
	_, err := CommitBlocks(t.Context(), client, []string{"b"}, nil)
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	if !ok || conflict.Reason != azerr.BlockList || !strings.Contains(err.Error(), "a block of the list is not there") || optest.Get(t, client) != "a" {
		t.Errorf("err = %v, content %q", err, optest.Get(t, client))
	}
}

func TestACommitOnAStaleVersionChangesNothing(t *testing.T) {
	_, client := optest.Quiet(t, "old")
	stale := optest.ETagOf(t, client)
	now := optest.Put(t, client, "new")
	if err := staged(t.Context(), client, "a"); err != nil {
		t.Fatal(err)
	}
	_, err := CommitBlocks(t.Context(), client, []string{"a"}, &UploadOptions{Conditions: optimistic.Conditions{IfMatch: stale}})
	if conflict, ok := errors.AsType[*optimistic.ConflictError](err); !ok || conflict.Base != stale || conflict.Current != now || optest.Get(t, client) != "new" {
		t.Errorf("err = %v, content %q", err, optest.Get(t, client))
	}
}

func TestCommitsAndPageBlobsUnderEveryFault(t *testing.T) {
	for name, fault := range optest.Every(func(r *aztest.Request) bool { return aztest.Writes(r) && r.Op != "Put Block" }) {
		for _, conditions := range []optimistic.Conditions{{}, {IfNoneMatch: "*"}} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, client := optest.Quiet(t, "")
					if err := staged(t.Context(), client, "a", "b"); err != nil {
						t.Fatal(err)
					}
					s.SetFaults(fault)
					res, err := CommitBlocks(t.Context(), client, []string{"a", "b"}, &UploadOptions{Conditions: conditions, SendOptions: optest.Recreate})
					s.SetFaults()
					s.Flush()
					if err != nil || optest.Get(t, client) != "ab" {
						t.Errorf("commit: %+v, %v: %q\n%v", res, err, optest.Get(t, client), s.Log())
					}
					s.SetFaults(fault)
					res, err = pages.Create(t.Context(), optest.PagesOf(s), 1024, &pages.CreateOptions{Conditions: conditions, SequenceNumber: 7, SendOptions: optest.Recreate})
					s.SetFaults()
					s.Flush()
					props, look := optest.PagesOf(s).GetProperties(t.Context(), nil)
					if err != nil || look != nil || *props.ContentLength != 1024 || *props.BlobSequenceNumber != 7 {
						t.Errorf("pages: %+v, %v, %v\n%v", res, err, look, s.Log())
					}
				})
			})
		}
	}
}

func TestAPageBlobIsCreatedOnCondition(t *testing.T) {
	s, _ := optest.Quiet(t, "x")
	first, err := pages.Create(t.Context(), optest.PagesOf(s), 512, &pages.CreateOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}, Metadata: map[string]string{"k": "v"}})
	if err != nil || !first.Created || first.Requests != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	if _, err := pages.Create(t.Context(), optest.PagesOf(s), 512, &pages.CreateOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}}); !errors.Is(err, optimistic.ErrExists) {
		t.Errorf("a second time: %v", err)
	}
	if _, err := pages.Create(t.Context(), optest.PagesOf(s), 1024, &pages.CreateOptions{Conditions: optimistic.Conditions{IfMatch: first.ETag}}); err != nil {
		t.Errorf("over the version: %v", err)
	}
	if _, err := pages.Create(t.Context(), optest.PagesOf(s), 1024, &pages.CreateOptions{Conditions: optimistic.Conditions{IfMatch: first.ETag}}); !errors.Is(err, optimistic.ErrConflict) {
		t.Errorf("over a stale version: %v", err)
	}
}

func TestInvalidBlocksAndPagesAreNotSent(t *testing.T) {
	s, client := optest.Quiet(t, "x")
	long := strings.Repeat("x", 65)
	for name, err := range map[string]error{
		"no id":         optest.ErrorOf(StageBlock(t.Context(), client, "", []byte("x"), nil)),
		"a long id":     optest.ErrorOf(StageBlock(t.Context(), client, long, []byte("x"), nil)),
		"nothing":       optest.ErrorOf(StageBlock(t.Context(), client, "a", nil, nil)),
		"unequal ids":   optest.ErrorOf(CommitBlocks(t.Context(), client, []string{"a", "bb"}, nil)),
		"empty ids":     optest.ErrorOf(CommitBlocks(t.Context(), client, []string{"", ""}, nil)),
		"an odd size":   optest.ErrorOf(pages.Create(t.Context(), optest.PagesOf(s), 100, nil)),
		"a huge size":   optest.ErrorOf(pages.Create(t.Context(), optest.PagesOf(s), 9<<40, nil)),
		"negative":      optest.ErrorOf(pages.Create(t.Context(), optest.PagesOf(s), -512, nil)),
		"a bad number":  optest.ErrorOf(pages.Create(t.Context(), optest.PagesOf(s), 512, &pages.CreateOptions{SequenceNumber: -1})),
		"both and more": optest.ErrorOf(CommitBlocks(t.Context(), client, []string{"a"}, &UploadOptions{Conditions: optimistic.Conditions{IfMatch: "x", IfNoneMatch: "*"}})),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if s.Requests() != 0 {
		t.Errorf("sent %v", s.Log())
	}
}

func TestPagesAreClearedOnCondition(t *testing.T) {
	s, _ := optest.Quiet(t, "x")
	client := optest.MakePages(t, s, 16<<20)
	if _, err := pages.Put(t.Context(), client, 512, []byte(strings.Repeat("x", 1024)), nil); err != nil {
		t.Fatal(err)
	}
	at, none := int64(1), int64(0)
	if _, err := pages.Clear(t.Context(), client, 0, 16<<20, &pages.PutOptions{Sequence: pages.SequenceConditions{IfEqual: &at}}); !errors.Is(err, optimistic.ErrConflict) ||
		!strings.Contains(err.Error(), "sequence number") {
		t.Errorf("a sequence number that it is not at: %v", err)
	}
	res, err := pages.Clear(t.Context(), client, 0, 16<<20, &pages.PutOptions{Sequence: pages.SequenceConditions{IfAtMost: &none}})
	ranges, listed := client.NewGetPageRangesPager(nil).NextPage(t.Context())
	if err != nil || res.Requests != 1 || listed != nil || len(ranges.PageRange) != 0 {
		t.Errorf("%+v, %v; left %v", res, err, ranges.PageRange)
	}
	for _, bad := range [][2]int64{{1, 512}, {0, 100}, {-512, 512}, {0, 0}} {
		if _, err := pages.Clear(t.Context(), client, bad[0], bad[1], nil); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}
