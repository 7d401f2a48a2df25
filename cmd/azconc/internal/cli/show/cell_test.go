package show

import "testing"

func TestACellIsOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "jobs/nightly": "jobs/nightly", "日本語 é": "日本語 é", "a\nb\tc\r": "a b c ", "\x1b[2J": "\ufffd[2J",
		"a\u202eb\u200dc": "a\ufffdb\ufffdc", "\x9b1m": "\ufffd1m", "\u009b1m": "\ufffd1m", "\xff": "\ufffd", "\ue000\U000F0000": "\ufffd\ufffd",
		"e\u0301": "e\u0301", "\u00a0": " ", "\x7f": "\ufffd",
	} {
		if got := Cell(text); got != want {
			t.Errorf("Cell(%q) = %q, want %q", text, got, want)
		}
	}
}
