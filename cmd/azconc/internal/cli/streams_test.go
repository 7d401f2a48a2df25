package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

func TestNoSecretPassesStderr(t *testing.T) {
	var out bytes.Buffer
	r := &redactor{W: &out}
	r.know(azaccount.SecretsOf(testKey, testSAS)...)
	// One by one: no secret passes in two halves either.
	for _, c := range []byte("key " + testKey + " and https://x/y?" + testSAS + " and c2VjcmV0IHNpZ25hdHVyZQ== too\nplain\r") {
		fmt.Fprintf(r, "%c", c)
	}
	fmt.Fprint(r, "a prompt")
	if strings.Contains(out.String(), "prompt") {
		t.Error("an unfinished line went out unasked")
	}
	r.Flush()
	got := out.String()
	for _, secret := range []string{testKey, "c2VjcmV0", "sig=c"} {
		if strings.Contains(got, secret) {
			t.Errorf("stderr shows %q: %s", secret, got)
		}
	}
	if !strings.HasSuffix(got, "\nplain\ra prompt") {
		t.Errorf("stderr = %q", got)
	}
}

// TestALongLineIsHeldBackInPart: it was held back whole and looked through with every write, which took ten minutes for 300 MB.
func TestALongLineIsHeldBackInPart(t *testing.T) {
	const size = 32 << 20
	var out bytes.Buffer
	r := &redactor{W: &out}
	part := []byte(strings.Repeat("x", 4<<10))
	held := 0
	for range size / len(part) {
		if _, err := r.Write(part); err != nil {
			t.Fatal(err)
		}
		held = max(held, cap(r.buf))
	}
	r.Flush()
	if out.Len() != size || held > 4*heldLine {
		t.Errorf("%d of %d bytes came through, %d were held back at a time", out.Len(), size, held)
	}
}

func TestNoSecretPassesInALongLine(t *testing.T) {
	for _, filler := range []string{"x", "&a=b"} {
		for _, at := range []int{heldLine - secretMost, heldLine} {
			for shift := 0; shift < 150; shift += 10 {
				var out bytes.Buffer
				r := &redactor{W: &out}
				r.know(azaccount.SecretsOf(testKey, testSAS)...)
				line := strings.Repeat(filler, (at-shift)/len(filler)) + " " + testKey + " https://x/y?" + testSAS + " " + strings.Repeat(filler, heldLine)
				for rest := line; rest != ""; {
					n := min(len(rest), 1000)
					fmt.Fprint(r, rest[:n])
					rest = rest[n:]
				}
				r.Flush()
				if got := out.String(); strings.Contains(got, testKey[:12]) || strings.Contains(got, testKey[len(testKey)-12:]) || strings.Contains(got, "c2VjcmV0") {
					t.Fatalf("%q around %d: a part of a secret comes through", filler, at-shift)
				}
			}
		}
	}
}

func TestProgressIsForTerminals(t *testing.T) {
	s, _, _, stderr := TestStreams()
	f := NewFactory(s, nil)
	f.Progress("put").Show(1, 2)
	if stderr.Len() > 0 {
		t.Errorf("progress without a terminal: %q", stderr)
	}
	f.ErrTerminal = true
	p := f.Progress("put jobs/a")
	p.Show(1<<20, 4<<20)
	if got := stderr.String(); got != "azconc: put jobs/a 1.0 MiB of 4.0 MiB, 25%\r" {
		t.Errorf("progress = %q", got)
	}
}

// Another writer chooses what metadata, owners and reasons hold.
func TestStoredTextCannotControlATerminal(t *testing.T) {
	s, _, stdout, stderr := TestStreams()
	f := NewFactory(s, nil)
	stored := metadataShown{"owner": "web\x1b[2J\u009b-1"}
	for _, terminal := range []bool{false, true} {
		stdout.Reset()
		stderr.Reset()
		f.OutTerminal, f.ErrTerminal = terminal, terminal
		if err := f.Print(stored); err != nil {
			t.Fatal(err)
		}
		f.Notef("held by %s", stored["owner"])
		for _, got := range []string{stdout.String(), stderr.String()} {
			if strings.ContainsAny(got, "\x1b\u009b") == terminal || !strings.HasSuffix(got, "\n") {
				t.Errorf("terminal %t: %q", terminal, got)
			}
		}
	}
}

type metadataShown map[string]string

func (m metadataShown) Text(w io.Writer) { show.Fields(w, "owner", m["owner"]) }

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{"": "''", "jobs/a.json": "jobs/a.json", `"0x8D"`: `'"0x8D"'`, "it's": `'it'\''s'`} {
		if got := show.Quote(in); got != want {
			t.Errorf("shellQuote(%q) = %s, want %s", in, got, want)
		}
	}
}
