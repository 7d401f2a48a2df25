package root

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/aztest"
)

// pending is a service on which copies do not end by themselves, with a blob jobs/a.
func pending(t *testing.T) *aztest.Service {
	s := aztest.New(nil)
	if _, err := s.BlockBlob("jobs", "a").UploadBuffer(t.Context(), []byte("a"), nil); err != nil {
		t.Fatal(err)
	}
	s.HoldCopies(true)
	return s
}

func TestAPendingCopyIsReportedAndAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pending(t)
		v := runOn(t.Context(), s, nil, nil, "blob", "copy", "jobs/a", "jobs/b", "-o", "json").json(t)
		id, _ := v["copy_id"].(string)
		if v["outcome"] != "copying" || v["copy_status"] != "pending" || id == "" || v["source"] != "jobs/a" || v["resource"] != "jobs/b" {
			t.Fatalf("%v", v)
		}
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Abort Copy Blob"), Count: 1})
		r := runOn(t.Context(), s, nil, nil, "blob", "abort-copy", "jobs/b", id, "-o", "json")
		if v := r.json(t); r.code != 0 || v["outcome"] != "aborted" || v["ambiguous"] != 1.0 {
			t.Errorf("exit %d, %v, want it aborted", r.code, v)
		}
		s.SetFaults()
		r = runOn(t.Context(), s, nil, nil, "blob", "abort-copy", "jobs/b", id, "-o", "json")
		if v := r.json(t); r.code != 0 || v["outcome"] != "already_applied" || v["requests"] != 2.0 {
			t.Errorf("again: exit %d, %v", r.code, v)
		}
		r = runOn(t.Context(), s, nil, nil, "blob", "abort-copy", "jobs/b", "1f812371-a41d-49e6-b123-f4b542e851c5", "-o", "json")
		if v := r.json(t); r.code != 4 || v["reason"] != "not pending" {
			t.Errorf("another: exit %d, %v, want 4", r.code, v)
		}
	})
}

func TestACopyThatIsWaitedForInVainTellsHowToEndIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pending(t)
		r := runOn(t.Context(), s, nil, nil, "blob", "copy", "jobs/a", "jobs/b", "--wait", "--timeout", "10s", "-o", "json")
		v := r.json(t)
		if id, _ := v["copy_id"].(string); r.code != 124 || id == "" || !strings.Contains(r.stderr, "azconc blob abort-copy jobs/b "+id) {
			t.Errorf("exit %d, %v, %s", r.code, v, r.stderr)
		}
	})
}

func TestACopyThatIsAbortedWhileWaitedForHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pending(t)
		time.AfterFunc(5*time.Second, func() {
			to := s.Container("jobs").NewBlobClient("b")
			p, err := to.GetProperties(context.Background(), nil)
			if err == nil {
				_, err = to.AbortCopyFromURL(context.Background(), *p.CopyID, nil)
			}
			if err != nil {
				t.Error(err)
			}
		})
		r := runOn(t.Context(), s, nil, nil, "blob", "copy", "jobs/a", "jobs/b", "--wait", "--timeout", "1m", "-o", "json")
		if v := r.json(t); r.code != 1 || v["copy_status"] != "aborted" {
			t.Errorf("exit %d, %v, want 1", r.code, v)
		}
	})
}

// The 403 of a SAS that may write and not read named no way out.
func TestACopyOfASourceThatMayNotBeReadSaysWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pending(t)
		s.HoldCopies(false)
		s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationPermissionMismatch", Match: aztest.Op("Get Blob Properties")})
		r := runOn(t.Context(), s, nil, nil, "blob", "copy", "jobs/a", "jobs/b")
		if r.code != fail.ExitUnauthorised || !strings.Contains(r.stderr, "the metadata of the source, jobs/a, are not readable, and nothing was copied") ||
			!strings.Contains(r.stderr, "hint: permit reading it, the letter r of a SAS, or give --metadata") {
			t.Errorf("exit %d, %s", r.code, r.stderr)
		}
		if r := runOn(t.Context(), s, nil, nil, "blob", "copy", "jobs/a", "jobs/b", "--metadata", "a=b"); r.code != 0 {
			t.Errorf("with metadata: exit %d, %s", r.code, r.stderr)
		}
	})
}
