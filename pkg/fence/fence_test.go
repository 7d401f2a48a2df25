package fence

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestATokenGrowsWithTheClockAndWithoutIt(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	for _, tt := range []struct {
		name     string
		previous Token
		want     Token
	}{
		{"the first one is the clock's", 0, 1_700_000_000_000},
		{"a token of long ago", 1_600_000_000_000, 1_700_000_000_000},
		{"a second holder within the second", 1_700_000_000_000, 1_700_000_000_001},
		{"ahead of the clock", 1_700_000_000_999, 1_700_000_001_000},
		{"a clock that went back", 1_800_000_000_000, 1_800_000_000_001},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := Next(tt.previous, at); err != nil || got != tt.want || got <= tt.previous {
				t.Errorf("Next(%d) = %d, %v, want %d", tt.previous, got, err, tt.want)
			}
		})
	}
}

func TestNothingFollowsTheLargestToken(t *testing.T) {
	if got, err := Next(math.MaxInt64-1, time.Now()); err != nil || got != math.MaxInt64 {
		t.Errorf("Next = %d, %v", got, err)
	}
	if got, err := Next(math.MaxInt64, time.Now()); err == nil {
		t.Errorf("Next = %d, want an error", got)
	}
}

func TestATokenBelongsToASecond(t *testing.T) {
	for token, want := range map[Token]int64{1_700_000_000_000: 1_700_000_000, 1_700_000_000_999: 1_700_000_000, 1_700_000_001_000: 1_700_000_001} {
		if got := token.Second().Unix(); got != want {
			t.Errorf("%d belongs to %d, want %d", token, got, want)
		}
	}
}

func TestATokenReadsBackAsItWasWritten(t *testing.T) {
	for _, token := range []Token{1, 1_700_000_000_001, math.MaxInt64} {
		got, err := Parse(token.String())
		if err != nil || got != token {
			t.Errorf("Parse(%q) = %d, %v", token.String(), got, err)
		}
	}
	if got, err := Parse(""); got != 0 || err != nil {
		t.Errorf(`Parse("") = %d, %v; want none`, got, err)
	}
}

func TestADamagedTokenIsNotTakenForNone(t *testing.T) {
	for _, s := range []string{"x", "-1", "0", "1.5", " 7", "9223372036854775808"} {
		if got, err := Parse(s); err == nil {
			t.Errorf("Parse(%q) = %d, want an error", s, got)
		}
	}
}

func TestOnlyALaterHolderKeepsAWriterOut(t *testing.T) {
	for _, stored := range []Token{0, 6, 7} {
		if err := Token(7).Admit("box/b", stored); err != nil {
			t.Errorf("stored %d: %v", stored, err)
		}
	}
	err := Token(7).Admit("box/b", 8)
	refusal, ok := errors.AsType[*Error](err)
	if !errors.Is(err, ErrFenced) || !ok || refusal.Mine != 7 || refusal.Stored != 8 {
		t.Fatalf("err = %#v, want ErrFenced with both tokens", err)
	}
	for _, part := range []string{"box/b", "7", "8"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
}

func FuzzParseNeverInventsAToken(f *testing.F) {
	f.Add("12")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		token, err := Parse(s)
		if err == nil && s != "" && token <= 0 {
			t.Errorf("Parse(%q) = %d", s, token)
		}
	})
}
