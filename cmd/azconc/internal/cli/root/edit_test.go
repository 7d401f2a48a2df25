package root

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/aztest"
)

// desk is a user at a terminal, with a blob, and an editor that is a shell command with the file's name in $1.
type desk struct {
	*testing.T
	service *aztest.Service
	blob    *blockblob.Client
	dir     string
}

func newDesk(t *testing.T, content string) *desk {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("editors are run by a shell")
	}
	s := aztest.New(nil)
	d := &desk{T: t, service: s, blob: s.BlockBlob("jobs", "t.txt"), dir: t.TempDir()}
	t.Setenv("TMPDIR", d.dir)
	d.put(content)
	return d
}

func (d *desk) put(content string) {
	d.Helper()
	if _, err := d.blob.UploadBuffer(context.Background(), []byte(content), nil); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) stored() string {
	d.Helper()
	buf := make([]byte, 1<<16)
	n, err := d.blob.DownloadBuffer(context.Background(), buf, nil)
	if err != nil {
		d.Fatal(err)
	}
	return string(buf[:n])
}

// edit runs blob edit with answers typed at its questions. When the editor is open, it writes a word to the terminal, and
// another writer stores theirs.
func (d *desk) edit(editor, theirs, answers string, args ...string) ran {
	d.Helper()
	streams := func(s *cli.Streams) {
		s.In, s.InTerminal, s.ErrTerminal = strings.NewReader(answers), true, true
		s.Err = &onFirstWrite{Writer: s.Err, do: func() {
			if theirs != "" {
				d.put(theirs)
			}
		}}
	}
	env := cli.Env{"EDITOR=e() { printf open >&2; " + editor + "; }; e", "TMPDIR=" + d.dir}
	return runOn(d.Context(), d.service, streams, env, append([]string{"blob", "edit", "jobs/t.txt"}, args...)...)
}

type onFirstWrite struct {
	io.Writer
	do func()
}

func (w *onFirstWrite) Write(p []byte) (int, error) {
	if w.do != nil {
		w.do()
		w.do = nil
	}
	return w.Writer.Write(p)
}

func (d *desk) files() []string {
	d.Helper()
	var out []string
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		d.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(d.dir, e.Name()))
		if err != nil {
			d.Fatal(err)
		}
		out = append(out, string(data))
	}
	return out
}

const (
	appendMine = `sed -i s/two/zwei/ "$1"`
	original   = "one\ntwo\nthree\n"
	elsewhere  = "ONE\ntwo\nthree\n"
	inTheSame  = "one\ndeux\nthree\n"
)

func TestEditAsksWhatToDoWithAConflict(t *testing.T) {
	for _, c := range []struct {
		name, editor, theirs, answers string
		code                          int
		stored                        string
		kept                          []string
	}{
		{"nobody else", appendMine, "", "", 0, "one\nzwei\nthree\n", nil},
		{"same change", appendMine, "one\nzwei\nthree\n", "", 0, "one\nzwei\nthree\n", nil},
		{"abort", appendMine, inTheSame, "no\n", 4, inTheSame, []string{"one\nzwei\nthree\n"}},
		{"an answer that is none", appendMine, inTheSame, "x\n", 4, inTheSame, []string{"one\nzwei\nthree\n"}},
		{"no answer", appendMine, inTheSame, "", 4, inTheSame, []string{"one\nzwei\nthree\n"}},
		{
			"edit again", `if grep -q zwei "$1"; then printf 'one\nzwei deux\nthree\n' > "$1"; else sed -i s/two/zwei/ "$1"; fi`,
			inTheSame, "yes\n", 0, "one\nzwei deux\nthree\n", nil,
		},
		{"edit again, until it is theirs", `if grep -q zwei "$1"; then sed -i s/zwei/deux/ "$1"; else sed -i s/two/zwei/ "$1"; fi`, inTheSame, "yes\n", 0, inTheSame, nil},
		{"an editor that fails", `grep -q zwei "$1" && exit 1; sed -i s/two/zwei/ "$1"`, inTheSame, "yes\n", 1, inTheSame, []string{"one\nzwei\nthree\n"}},
		{"a change elsewhere", appendMine, elsewhere, "no\n", 4, elsewhere, []string{"one\nzwei\nthree\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, original)
			r := d.edit(c.editor, c.theirs, c.answers)
			if r.code != c.code {
				t.Errorf("exit %d, want %d: %s", r.code, c.code, r.stderr)
			}
			if got := d.stored(); got != c.stored {
				t.Errorf("stored %q, want %q", got, c.stored)
			}
			if got, want := fmt.Sprintf("%q", d.files()), fmt.Sprintf("%q", c.kept); got != want && !(len(c.kept) == 0 && got == "[]") {
				t.Errorf("kept %s, want %s", got, want)
			}
			if c.theirs == inTheSame && !strings.Contains(r.stderr, "-two\n+deux\n") {
				t.Errorf("stderr does not show what the other writer changed: %s", r.stderr)
			}
			if len(c.kept) > 0 && !strings.Contains(r.stderr, d.dir) {
				t.Errorf("stderr does not say where the text is: %s", r.stderr)
			}
		})
	}
}

func TestEditWithAPinnedVersionTakesNoOther(t *testing.T) {
	d := newDesk(t, original)
	p, err := d.blob.GetProperties(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := d.edit(appendMine, elsewhere, "yes\n", "--if-match", string(*p.ETag))
	if r.code != 4 || d.stored() != elsewhere || len(d.files()) != 1 {
		t.Errorf("exit %d, stored %q, %d files kept: %s", r.code, d.stored(), len(d.files()), r.stderr)
	}
}

// Text that cannot be written because the service does not respond is not lost.
func TestEditKeepsTheTextWhenTheOutcomeIsUnknown(t *testing.T) {
	d := newDesk(t, original)
	d.service.SetFaults(
		aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Put Blob"), Count: 1},
		aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationPermissionMismatch", Match: aztest.Op("Get Blob Properties")},
	)
	r := d.edit(appendMine, "", "")
	if r.code != 5 || len(d.files()) != 1 || d.files()[0] != "one\nzwei\nthree\n" {
		t.Errorf("exit %d, kept %q: %s", r.code, d.files(), r.stderr)
	}
}

// TestTheRescueCommandNamesTheVersionThatIsThereNow runs the command that the hint names after each way to fail.
func TestTheRescueCommandNamesTheVersionThatIsThereNow(t *testing.T) {
	for _, c := range []struct {
		name, answers string
		pinned        bool
	}{
		{"pinned", "", true}, {"no answer", "", false}, {"aborted", "no\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, original)
			var args []string
			if c.pinned {
				p, err := d.blob.GetProperties(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				args = []string{"--if-match", string(*p.ETag)}
			}
			r := d.edit(appendMine, inTheSame, c.answers, args...)
			p, err := d.blob.GetProperties(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if want := "--if-match '" + string(*p.ETag) + "'"; r.code != fail.ExitConflict || !strings.Contains(r.stderr, want) {
				t.Errorf("exit %d, %s, want a command with %s", r.code, r.stderr, want)
			}
		})
	}
}

func TestAnEditorNeedsATerminalUnlessItIsNamed(t *testing.T) {
	d := newDesk(t, original)
	r := runOn(t.Context(), d.service, nil, cli.Env{"TMPDIR=" + d.dir}, "blob", "edit", "jobs/t.txt")
	if r.code != fail.ExitUsage || !strings.Contains(r.stderr, "there is no terminal for an editor") || len(d.files()) != 0 {
		t.Errorf("without an editor: exit %d, %q, %d files", r.code, r.stderr, len(d.files()))
	}
}
