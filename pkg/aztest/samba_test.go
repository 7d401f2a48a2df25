package aztest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	filelease "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"
)

// recordedFromSamba returns the lines of a section of testdata/samba.txt that have two columns or more, and its headings.
func recordedFromSamba(t *testing.T, section string) (lines []string) {
	t.Helper()
	data, err := os.ReadFile("testdata/samba.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(data), "## "+section+"\n\n")
	_, rest, more := strings.Cut(rest, "\n\n") // what explains the section
	if !ok || !more {
		t.Fatalf("testdata/samba.txt has no section %s", section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	for line := range strings.SplitSeq(rest, "\n") {
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// handleOf is the handle that "RW/RD" means.
func handleOf(id, text string) SMBHandle {
	access, share, _ := strings.Cut(text, "/")
	has := func(set, letter string) bool { return strings.Contains(set, letter) }
	return SMBHandle{ID: id, Write: has(access, "W"), Delete: has(access, "D"),
		ShareRead: has(share, "R"), ShareWrite: has(share, "W"), ShareDelete: has(share, "D")}
}

const foreignLease = "00000000-0000-4000-8000-000000000001"

func leaseOfFile(t *testing.T, f *file.Client) *filelease.FileClient {
	t.Helper()
	id := foreignLease
	l, err := filelease.NewFileClient(f, &filelease.FileClientOptions{LeaseID: &id})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// asRecorded are the operations of the recording, in its order, and those of its sessions.
func asRecorded(t *testing.T, f *file.Client) (names []string, do map[string]func(context.Context) error) {
	t.Helper()
	l, of := leaseOfFile(t, f), operations(f)
	return []string{"Create File", "Get File", "Set File Properties", "Set File Metadata", "Delete File", "Put Range", "List Ranges", "Lease File", "Get File Properties"},
		map[string]func(context.Context) error{
			"Create File": of["create"], "Get File": of["get"], "Set File Metadata": of["set metadata"], "Delete File": of["delete"],
			"Put Range": of["put range"], "Get File Properties": of["properties"],
			"Set File Properties": func(ctx context.Context) error { _, err := f.SetHTTPHeaders(ctx, nil); return err },
			"List Ranges":         func(ctx context.Context) error { _, err := f.GetRangeList(ctx, nil); return err },
			"Lease File":          func(ctx context.Context) error { _, err := l.Acquire(ctx, nil); return err },
			"Break Lease":         func(ctx context.Context) error { _, err := l.Break(ctx, nil); return err },
			"Release Lease":       func(ctx context.Context) error { _, err := l.Release(ctx, nil); return err },
			"Get File from 2": func(ctx context.Context) error {
				_, err := f.DownloadStream(ctx, &file.DownloadStreamOptions{Range: file.HTTPRange{Offset: 2, Count: 3}})
				return err
			},
		}
}

func asMark(t *testing.T, answer string) string {
	t.Helper()
	switch answer {
	case SMBOpened, "":
		return "."
	case SMBSharingViolation, "SharingViolation":
		return "x"
	}
	t.Errorf("an answer is %s", answer)
	return "?"
}

func TestHandlesExcludeEachOtherAsSambaDecided(t *testing.T) {
	rows := recordedFromSamba(t, "Opens beside opens")
	if len(rows) != 32 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		there, want, _ := strings.Cut(row, " ")
		got := ""
		for _, next := range rows {
			s, _ := newFile(t)
			s.OpenSMB("box", "f", handleOf("1", there))
			next, _, _ = strings.Cut(next, " ")
			got += asMark(t, s.OpenSMB("box", "f", handleOf("2", next)))
		}
		if want = strings.TrimSpace(want); got != want {
			t.Errorf("beside %s: %s, Samba decided %s", there, got, want)
		}
	}
}

func TestOperationsMeetHandlesAsSambaDecided(t *testing.T) {
	for _, row := range recordedFromSamba(t, "Operations beside opens") {
		there, want, _ := strings.Cut(row, " ")
		got := ""
		for i := range len(strings.TrimSpace(want)) {
			s, f := newFile(t)
			s.OpenSMB("box", "f", handleOf("1", there))
			names, do := asRecorded(t, f)
			got += asMark(t, fileCode(do[names[i]](t.Context())))
		}
		if want = strings.TrimSpace(want); got != want {
			t.Errorf("beside %s: %s, Samba decided %s", there, got, want)
		}
	}
}

func TestSessionsGoAsWithSamba(t *testing.T) {
	var s *Service
	var f *file.Client
	session := ""
	for _, line := range recordedFromSamba(t, "Sessions") {
		if name, ok := strings.CutPrefix(line, "# "); ok {
			session = name
			s, f = newFile(t)
			continue
		}
		step, want := strings.TrimSpace(line[:21]), line[21:]
		if got := sambaStep(t, s, f, step); got != want {
			t.Errorf("%s: %s: %s, Samba decided %s", session, step, got, want)
		}
	}
}

// sambaStep carries out a step of a session, and returns what the recording has beside it.
func sambaStep(t *testing.T, s *Service, f *file.Client, step string) string {
	t.Helper()
	words := strings.Fields(step)
	switch words[0] {
	case "open":
		if status := s.OpenSMB("box", "f", handleOf(words[1], words[2])); status != SMBOpened {
			return status
		}
		return "ok"
	case "close":
		s.CloseSMB("box", "f", words[1])
		return "ok"
	case "mark", "unmark":
		s.MarkDeletedSMB("box", "f", words[0] == "mark")
		return "ok"
	case "lock":
		s.LockRangeSMB("box", "f", words[1], 0, 1)
		return "ok"
	case "Force":
		resp, err := f.ForceCloseHandles(t.Context(), "*", nil)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("closed %d", *resp.NumberOfHandlesClosed)
	}
	names, do := asRecorded(t, f)
	if step != "every operation" {
		names = []string{"", step}
	}
	var answers []string
	for _, name := range names[1:] {
		err := do[name](t.Context())
		if err != nil && fileCode(err) == "" {
			t.Fatal(err)
		}
		if answer := cmp.Or(fileCode(err), "ok"); !slices.Contains(answers, answer) {
			answers = append(answers, answer)
		}
	}
	return strings.Join(answers, ", ")
}
