package blobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func setTag(name, value string) func(context.Context, *map[string]string) error {
	return func(_ context.Context, tags *map[string]string) error {
		(*tags)[name] = value
		return nil
	}
}

func TestTagsAreGuardedByTheTagsThatWereRead(t *testing.T) {
	s, client := optest.Quiet(t, "")
	etag := optest.PutTagged(t, client, map[string]string{"state": "ready", "team": "a b"})
	s.Reset()
	res, err := optimistic.Update(t.Context(), NewTags(client.BlobClient()), setTag("state", "done"), &optimistic.UpdateOptions{Conditions: optimistic.Conditions{IfTags: `"team" <> 'c' OR "x" = 'y'`}})
	if err != nil || !res.Changed {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	optest.Requests(t, s, res, 2)
	want := `("team" <> 'c' OR "x" = 'y') AND "state" = 'ready' AND "team" = 'a b'`
	if got := s.Log()[1].Header.Get("X-Ms-If-Tags"); got != want {
		t.Errorf("x-ms-if-tags: %s, want %s", got, want)
	}
	got := optest.TagsOf(t, client.BlobClient())
	if got[optimistic.LineageKey] != res.WriteID || got["state"] != "done" || got["team"] != "a b" || len(got) != 3 {
		t.Errorf("tags = %v", got)
	}
	if optest.ETagOf(t, client) != etag {
		t.Error("the blob has another ETag")
	}
	s.Reset()
	if res, err = optimistic.Update(t.Context(), NewTags(client.BlobClient()), setTag("state", "gone"), &optimistic.UpdateOptions{Conditions: optimistic.Conditions{IfMatch: res.ETag}}); err != nil {
		t.Fatalf("Update at the version reported: %+v, %v", res, err)
	}
	if got := s.Log()[1].Header.Get("X-Ms-If-Tags"); !strings.Contains(got, `"azconclineage" = '`) {
		t.Errorf("x-ms-if-tags: %s, want the lineage in it", got)
	}
	if _, err = optimistic.Update(t.Context(), NewTags(client.BlobClient()), setTag("state", "x"), &optimistic.UpdateOptions{Conditions: optimistic.Conditions{IfMatch: res.BaseETag}}); !errors.Is(err, optimistic.ErrConflict) {
		t.Errorf("err = %v, want a conflict: the version is an old one", err)
	}
}

// TestATagThatAnotherAzconcWriterAddsIsNotLost, except by the first write to a blob without the lineage tag, as the
// documented limits say.
func TestATagThatAnotherAzconcWriterAddsIsNotLost(t *testing.T) {
	for name, mark := range map[string]string{"from the start": "-", "first write": ""} {
		t.Run(name, func(t *testing.T) {
			s, client := optest.Quiet(t, "")
			initial := map[string]string{"state": "ready"}
			if mark != "" {
				initial[optimistic.LineageKey] = mark
			}
			optest.PutTagged(t, client, initial)
			target := NewTags(s.BlockBlob("box", "n.json").BlobClient())
			attempts := 0
			_, err := optimistic.Update(t.Context(), NewTags(client.BlobClient()), func(ctx context.Context, tags *map[string]string) error {
				if attempts++; attempts == 1 {
					if _, err := optimistic.Update(ctx, target, setTag("added", "by a rival"), nil); err != nil {
						return err
					}
				}
				(*tags)["mine"] = "too"
				return nil
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := optest.TagsOf(t, client.BlobClient())
			delete(got, optimistic.LineageKey)
			want := map[string]string{"state": "ready", "mine": "too", "added": "by a rival"}
			if mark == "" {
				delete(want, "added")
			}
			if !maps.Equal(got, want) {
				t.Errorf("tags = %v, want %v", got, want)
			}
		})
	}
}

// TestAWriteOfTagsThatDoesNotBreakItsConditionIsNotRepeatedBlindly: it only adds a tag, its response is lost, and a
// rival changes the tags. Sent again, it would meet its condition and overwrite the rival's change.
func TestAWriteOfTagsThatDoesNotBreakItsConditionIsNotRepeatedBlindly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, "")
		optest.PutTagged(t, client, map[string]string{"state": "ready"})
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		go func() {
			bubble.Sleep(time.Microsecond)
			if _, err := optimistic.Update(context.Background(), NewTags(client.BlobClient()), setTag("added", "by a rival"), nil); err != nil {
				t.Error(err)
			}
		}()
		res, err := optimistic.Update(t.Context(), NewTags(client.BlobClient()), setTag("mine", "too"), nil)
		if err != nil || res.Attempts != 1 || res.Resolved != 1 {
			t.Errorf("Update = %+v, %v", res, err)
		}
		if got := optest.TagsOf(t, client.BlobClient()); got["mine"] != "too" || got["added"] != "by a rival" {
			t.Errorf("tags = %v", got)
		}
	})
}

func TestWipedTagsLeaveTheOutcomeUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, "")
		optest.PutTagged(t, client, map[string]string{"state": "ready", optimistic.LineageKey: "-"})
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		go func() {
			bubble.Sleep(time.Microsecond)
			if _, err := client.SetTags(context.Background(), map[string]string{"state": "done"}, nil); err != nil {
				t.Error(err)
			}
		}()
		if _, err := optimistic.Update(t.Context(), NewTags(client.BlobClient()), setTag("state", "done"), nil); !errors.Is(err, optimistic.ErrOutcomeUnknown) {
			t.Errorf("err = %v, want unknown: the same tags are no proof", err)
		}
	})
}

func TestAnOperationOnTagsIsAppliedOnceAndRemembered(t *testing.T) {
	_, client := optest.Quiet(t, "")
	optest.PutTagged(t, client, nil)
	o := &optimistic.UpdateOptions{OperationID: "message 1"}
	for i := range 3 {
		res, err := optimistic.Update(t.Context(), NewTags(client.BlobClient()), setTag("n", strings.Repeat("x", i+1)), o)
		if err != nil || res.AlreadyApplied != (i > 0) {
			t.Errorf("Update = %+v, %v", res, err)
		}
	}
	if got := optest.TagsOf(t, client.BlobClient())["n"]; got != "x" {
		t.Errorf("n = %q", got)
	}
	full := map[string]string{}
	for _, name := range strings.Split("0 1 2 3 4 5 6 7 8 9", " ") {
		full[name] = "x"
	}
	optest.PutTagged(t, client, full)
	if _, err := optimistic.Update(t.Context(), NewTags(client.BlobClient()), setTag("1", "y"), o); err == nil || !strings.Contains(err.Error(), "OperationID") {
		t.Errorf("err = %v, want it refused: there is no room to remember it", err)
	}
}

func TestWithoutALineageTheTagIsRemoved(t *testing.T) {
	_, client := optest.Quiet(t, "")
	optest.PutTagged(t, client, map[string]string{"a": "1", optimistic.LineageKey: "-"})
	if _, err := optimistic.Update(t.Context(), NewTags(client.BlobClient()), setTag("a", "2"), &optimistic.UpdateOptions{SendOptions: optimistic.SendOptions{NoLineage: true}}); err != nil {
		t.Fatal(err)
	}
	if got := optest.TagsOf(t, client.BlobClient()); !maps.Equal(got, map[string]string{"a": "2"}) {
		t.Errorf("tags = %v", got)
	}
}

// TestTagsWithoutALineageKeepTheOperations: the tag was removed with them, and a rerun was carried out again.
func TestTagsWithoutALineageKeepTheOperations(t *testing.T) {
	_, client := optest.Quiet(t, "")
	optest.PutTagged(t, client, map[string]string{"a": "1"})
	target, once := NewTags(client.BlobClient()), &optimistic.UpdateOptions{OperationID: "A"}
	if _, err := optimistic.Update(t.Context(), target, setTag("a", "2"), once); err != nil {
		t.Fatal(err)
	}
	bare := optimistic.SendOptions{NoLineage: true}
	if _, err := optimistic.Update(t.Context(), target, setTag("a", "3"), &optimistic.UpdateOptions{SendOptions: bare}); err != nil {
		t.Fatal(err)
	}
	if res, err := optimistic.Update(t.Context(), target, setTag("a", "2"), once); err != nil || !res.AlreadyApplied {
		t.Errorf("%+v, %v", res, err)
	}
	if _, lineage := optest.TagsOf(t, client.BlobClient())[optimistic.LineageKey]; !lineage {
		t.Error("the tag is gone")
	}
}

func TestADocumentOfTagsCostsOneRequestAndStaysGuarded(t *testing.T) {
	s, client := optest.Quiet(t, "")
	optest.PutTagged(t, client, nil)
	d, err := optimistic.NewDocument(NewTags(client.BlobClient()), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 { // beyond what the tag remembers
		s.Reset()
		res, err := d.Update(t.Context(), setTag("n", strings.Repeat("x", i+1)))
		if err != nil || i > 0 && res.Requests != 1 {
			t.Fatalf("update %d = %+v, %v\n%v", i, res, err, s.Log())
		}
	}
	if _, err := optimistic.Update(t.Context(), NewTags(client.BlobClient()), setTag("other", "1"), nil); err != nil {
		t.Fatal(err)
	}
	res, err := d.Update(t.Context(), setTag("n", "last"))
	if err != nil || res.Conflicts != 1 {
		t.Errorf("after a rival's: %+v, %v", res, err)
	}
	if got := optest.TagsOf(t, client.BlobClient()); got["other"] != "1" || got["n"] != "last" || len(got[optimistic.LineageKey]) > maxTagValue {
		t.Errorf("tags = %v", got)
	}
}

func TestTagsAreCheckedBeforeTheyAreSent(t *testing.T) {
	eleven := map[string]string{}
	for _, name := range strings.Split("0 1 2 3 4 5 6 7 8 9 10", " ") {
		eleven[name] = ""
	}
	for _, tt := range []struct {
		tags map[string]string
		want string
	}{
		{eleven, "more than the 10"},
		{map[string]string{"": "x"}, "1 to 128"},
		{map[string]string{strings.Repeat("n", 129): "x"}, "1 to 128"},
		{map[string]string{"n": strings.Repeat("v", 257)}, "256"},
		{map[string]string{"n": "it's"}, "allowed"},
		{map[string]string{`n" = 'x' OR "m`: "v"}, "allowed"},
		{map[string]string{optimistic.LineageKey: "x"}, "azconc's own"},
		{map[string]string{"n": "ü"}, "allowed"},
	} {
		if err := validTags(tt.tags); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("validTags(%v) = %v, want %q", tt.tags, err, tt.want)
		}
	}
	if err := validTags(map[string]string{"a b+c-d.e/f:g=h_i": "Z 9", "empty": ""}); err != nil {
		t.Errorf("valid tags: %v", err)
	}
}

func TestALineageInATagIsReadBack(t *testing.T) {
	var l protocol.Lineage
	for range 40 {
		l = l.Push(32, protocol.Entry{ID: protocol.NewWriteID(), Base: protocol.Over(protocol.UnknownBase)})
	}
	value := protocol.TagLineage(l)
	got := protocol.ParseTagLineage(value).Writes
	if len(value) > maxTagValue || len(got) != 14 {
		t.Errorf("%d entries in %d characters", len(got), len(value))
	}
	for i, e := range got {
		if e != l.Writes[i] {
			t.Errorf("entry %d = %v, want %v", i, e, l.Writes[i])
		}
	}
	for i := range 9 {
		l = l.Perform(protocol.NewIntent("tags", fmt.Sprint(i)), time.Now())
	}
	value = protocol.TagLineage(l)
	if both := protocol.ParseTagLineage(value); len(value) > maxTagValue || len(both.Writes) < 8 || protocol.TagLineage(both) != value ||
		!both.Performed(protocol.NewIntent("tags", "2")) || both.Performed(protocol.NewIntent("tags", "1")) {
		t.Errorf("with operations: %+v in %d characters", both, len(value))
	}
	for _, foreign := range []string{"", "-", "new", "w", "wabc..wdef", "Wabcdefghijklmnop", "wabcdefghij klmno"} {
		if got := protocol.ParseTagLineage(foreign); len(got.Writes)+len(got.Operations) > 0 {
			t.Errorf("parseTagLineage(%q) = %v", foreign, got)
		}
	}
}

func FuzzTagLineage(f *testing.F) {
	f.Add("wabcdefghijklmnop.oabcdefghijklmnop")
	f.Add("..")
	f.Fuzz(func(t *testing.T, value string) {
		if l := protocol.ParseTagLineage(value); len(l.Writes) > 0 && len(value) <= maxTagValue && len(protocol.ParseTagLineage(protocol.TagLineage(l)).Writes) != len(l.Writes) {
			t.Errorf("%q was read as %v", value, l)
		}
	})
}
