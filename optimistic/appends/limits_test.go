package appends

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestASealResolvesALostAppend: the request is lost, and before it is sent again the blob is sealed. So it never lands.
func TestASealResolvesALostAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		client := makeLog(t, s, "start")
		s.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Writes, Count: 1})
		go func() {
			bubble.Sleep(time.Microsecond)
			if _, err := client.Seal(context.Background(), nil); err != nil {
				t.Error(err)
			}
		}()
		if _, err := Append(t.Context(), client, []byte("x"), nil); !errors.Is(err, ErrSealed) || errors.Is(err, optimistic.ErrOutcomeUnknown) {
			t.Errorf("err = %v, want sealed", err)
		}
	})
}

func TestAppendOptionsAreChecked(t *testing.T) {
	s := aztest.New(nil)
	client := makeLog(t, s, "")
	for name, o := range map[string]*AppendOptions{
		"IfNoneMatch": {Conditions: optimistic.Conditions{IfNoneMatch: "*"}},
		"Position":    {Position: -1},
		"MaxSize":     {MaxSize: -1},
		"ETag":        {Conditions: optimistic.Conditions{IfMatch: "bare"}},
	} {
		if _, err := Append(t.Context(), client, []byte("x"), o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, data := range [][]byte{nil, make([]byte, maxAppendBlock+1)} {
		if _, err := Append(t.Context(), client, data, nil); err == nil {
			t.Errorf("%d bytes: no error", len(data))
		}
	}
	if s.Requests() != 0 {
		t.Errorf("sent %v", s.Log())
	}
}

func TestRecordsAreReadBack(t *testing.T) {
	var all []byte
	want := []string{"", "one", "two\nlines\n", recordMark + " wfake 3\nabc\n", strings.Repeat("x", 10_000)}
	for i, data := range want {
		all = append(all, frame(fmt.Sprintf("w%d", i), []byte(data))...)
	}
	i, end := 0, int64(0)
	for r, err := range Records(bytes.NewReader(all)) {
		if err != nil || string(r.Data) != want[i] || r.ID != fmt.Sprintf("w%d", i) || r.Offset != end {
			t.Fatalf("record %d = %.40q at %d, %v", i, r.Data, r.Offset, err)
		}
		end += int64(len(frame(r.ID, r.Data)))
		i++
	}
	if i != len(want) {
		t.Errorf("%d records, want %d", i, len(want))
	}
	for cut := 1; cut < len(all)-1; cut += 7 {
		n, last := 0, error(nil)
		for _, err := range Records(bytes.NewReader(all[:cut])) {
			n++
			last = err
		}
		if last != nil && !errors.Is(last, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v", cut, last)
		}
	}
	for _, foreign := range []string{"plain text\n", recordMark + "\n", recordMark + " w1 -1\n", recordMark + " w1 03\nabc\n", recordMark + " w1 3\nabcd\n", strings.Repeat("y", 200), recordMark + " w1 99999999999\n"} {
		for _, err := range Records(strings.NewReader(foreign)) {
			if !errors.Is(err, errNotRecord) {
				t.Errorf("%.30q: err = %v", foreign, err)
			}
		}
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(string(frame("w1", []byte("data"))))
	f.Add("azconc-record w 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		var again []byte
		for r, err := range Records(strings.NewReader(text)) {
			if err != nil {
				return
			}
			again = append(again, frame(r.ID, r.Data)...)
		}
		if string(again) != text {
			t.Errorf("%q was read as %q", text, again)
		}
	})
}
