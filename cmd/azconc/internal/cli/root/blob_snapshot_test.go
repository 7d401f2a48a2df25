package root

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/aztest"
)

func TestASnapshotIsReadCopiedAndDeletedByItsName(t *testing.T) {
	for _, form := range []string{"%s?snapshot=%s", "http://127.0.0.1:10000/devstoreaccount1/%s?snapshot=%s"} {
		s := aztest.New(nil)
		ctx := t.Context()
		blob := s.BlockBlob("jobs", "a b/c")
		if _, err := blob.UploadBuffer(ctx, []byte("old"), nil); err != nil {
			t.Fatal(err)
		}
		do := func(args ...string) ran {
			t.Helper()
			r := runOn(ctx, s, nil, nil, args...)
			if r.code != 0 {
				t.Fatalf("azconc %q: %+v", args, r)
			}
			return r
		}
		at := strings.TrimSpace(do("blob", "snapshot", "jobs/a b/c").out)
		if _, err := blob.UploadBuffer(ctx, []byte("new"), nil); err != nil {
			t.Fatal(err)
		}
		name := strings.Split(strings.Replace(fmt.Sprintf(form, "jobs/a%b/c", at), "a%b", "a\x00b", 1), " ")
		for i := range name {
			name[i] = strings.ReplaceAll(name[i], "\x00", " ")
		}
		if listed := do("blob", "list", "jobs", "--snapshots").out; listed != "a b/c?snapshot="+at+"\na b/c\n" {
			t.Errorf("list --snapshots: %q", listed)
		}
		if r := do(append([]string{"blob", "get"}, name...)...); r.out != "old" {
			t.Errorf("get %q: %q", name, r.out)
		}
		etag := do(append([]string{"blob", "show", "-o", "json"}, name...)...).json(t)["etag"].(string)
		do(append([]string{"blob", "copy", name[0], "jobs/copy", "--source-if-match", etag, "--wait"}, name[1:]...)...)
		if r := do("blob", "get", "jobs/copy"); r.out != "old" {
			t.Errorf("copy %q: %q", name, r.out)
		}
		if r := runOn(ctx, s, nil, nil, append([]string{"blob", "delete", "--if-match", "0x1"}, name...)...); r.code != fail.ExitConflict {
			t.Errorf("delete %q of another version: %+v", name, r)
		}
		v := do(append([]string{"blob", "delete", "--if-match", etag, "-o", "json"}, name...)...).json(t)
		if v["outcome"] != "deleted" || v["resource"] != "jobs/a b/c?snapshot="+at {
			t.Errorf("delete %q: %v", name, v)
		}
		if r := do("blob", "get", "jobs/a b/c"); r.out != "new" {
			t.Errorf("after the delete of the snapshot the blob holds %q", r.out)
		}
		if r := runOn(ctx, s, nil, nil, append([]string{"blob", "show"}, name...)...); r.code != fail.ExitNotFound {
			t.Errorf("show of the deleted snapshot: %+v", r)
		}
	}
}

func TestTheBlocksOfALeasedBlobAreListedWithItsLease(t *testing.T) {
	s := aztest.New(nil)
	if _, err := s.BlockBlob("jobs", "a").UploadBuffer(context.Background(), []byte("a"), nil); err != nil {
		t.Fatal(err)
	}
	r := runOn(t.Context(), s, nil, nil, "blob", "lease", "acquire", "jobs/a", "--duration", "infinite")
	if r := runOn(t.Context(), s, nil, nil, "blob", "block", "list", "jobs/a", "--lease-id", strings.TrimSpace(r.out)); r.code != 0 {
		t.Errorf("with the lease: %+v", r)
	}
	if r := runOn(t.Context(), s, nil, nil, "blob", "block", "list", "jobs/a", "--lease-id", "00000000-0000-4000-8000-00000000000a"); r.code != fail.ExitLost {
		t.Errorf("with another: %+v, want %d", r, fail.ExitLost)
	}
}
