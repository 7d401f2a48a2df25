package appends

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// newLog returns the log app in the container box.
func newLog(t *testing.T, s *aztest.Service, o *LogOptions) *Log {
	t.Helper()
	l, err := NewLog(s.Container("box"), "app", o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// write appends a record, and checks what that has sent.
func write(t *testing.T, s *aztest.Service, l *Log, data string, want ...string) LogResult {
	t.Helper()
	s.Reset()
	res, err := l.Append(t.Context(), []byte(data))
	if err != nil || res.ID == "" || !res.Changed {
		t.Fatalf("Append(%.20s) = %+v, %v\n%v", data, res, err, s.Log())
	}
	if got := optest.Ops(s); !slices.Equal(got, want) || res.Requests != len(want) {
		t.Errorf("Append(%.20s) reported %d requests and sent %q, want %q", data, res.Requests, got, want)
	}
	return res
}

// readAll returns the data of the records from a position on, and the position after them.
func readAll(t *testing.T, l *Log, from Position) (all []string, next Position) {
	t.Helper()
	next = from
	for r, err := range l.Records(context.Background(), from, nil) {
		if err != nil {
			t.Fatalf("Records: %v", err)
		}
		if r.Position.Blob == next.Blob && r.Position != next {
			t.Errorf("a record is at %s after one that ended at %s", r.Position, next)
		}
		all, next = append(all, string(r.Data)), r.Next
	}
	return all, next
}

const (
	list, put, add, seal, get = "List Blobs", "Put Blob", "Append Block", "Append Blob Seal", "Get Blob"
)

// TestWhatALogSends is the bill of one writer, and of one that comes late.
func TestWhatALogSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		s.BlockBlob("box", "any") // makes the container
		record := strings.Repeat("x", 100)
		o := &LogOptions{MaxSize: 450, MaxAge: time.Hour, HTTPHeaders: &blob.HTTPHeaders{BlobContentType: new("text/plain")}}
		one, late, young := newLog(t, s, o), newLog(t, s, o), newLog(t, s, nil)
		first := write(t, s, one, record, list, put, add)
		if first.Position != (Position{Blob: 1}) || !first.Created || first.Next.Offset <= 100 {
			t.Errorf("the first record is at %+v", first)
		}
		write(t, s, one, record, add)
		write(t, s, late, record[1:], list, add)
		write(t, s, one, record[2:], add, get, seal, put, add) // by its size, after a conflict with the late one
		write(t, s, one, record[3:], add)
		write(t, s, young, record[3:], list, add)
		bubble.Sleep(time.Hour)
		write(t, s, one, record[4:], seal, put, add) // by its age: nobody has told it of the record of young
		write(t, s, late, record[5:], seal, put, list, add)
		if res := write(t, s, young, record[6:], add, get, list, add); res.Position.Blob != 3 {
			t.Errorf("a late writer is at %s", res.Position)
		}
		s.Reset()
		all, next := readAll(t, one, Position{})
		if want := []string{list, get, get, get}; len(all) != 9 || !slices.Equal(optest.Ops(s), want) {
			t.Errorf("read %d records by %q, want 9 by %q", len(all), optest.Ops(s), want)
		}
		s.Reset()
		if again, _ := readAll(t, one, next); len(again) != 0 || s.Requests() != 1 {
			t.Errorf("at the end: read %q with %d requests", again, s.Requests())
		}
		props := optest.PropertiesOf(t, one.part(2).BlobClient())
		if *props.ContentType != "text/plain" || !*props.IsSealed || optest.PropertiesOf(t, one.part(3).BlobClient()).IsSealed != nil {
			t.Errorf("the blobs are %+v", props)
		}
	})
}

// TestALogGoesOnWhenABlobIsFull: the service has a limit of 50,000 blocks. With -short its refusal alone is what the writers meet.
func TestALogGoesOnWhenABlobIsFull(t *testing.T) {
	s := aztest.New(&aztest.Options{WithoutLog: true})
	s.BlockBlob("box", "any")
	l, other, want := newLog(t, s, nil), newLog(t, s, nil), 4
	if !testing.Short() {
		want = 50_002
		fill(t, s, l, 49_998)
	}
	for _, w := range []*Log{l, other} {
		if _, err := w.Append(t.Context(), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if testing.Short() {
		s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 409, Code: "BlockCountExceedsLimit", Count: 1, Match: func(r *aztest.Request) bool {
			return r.Op == add && r.Resource == "box/app/000001"
		}})
	}
	for i, want := range []struct{ requests, at int }{{5, 2}, {4, 2}, {1, 2}} {
		w := l
		if i == 0 {
			w = other
		}
		res, err := w.Append(t.Context(), []byte("record"))
		if err != nil || res.Requests != want.requests || res.Position.Blob != want.at {
			t.Errorf("record %d: %+v, %v, want blob %d with %d requests", i, res, err, want.at, want.requests)
		}
	}
	if all, _ := readAll(t, l, Position{}); len(all) != want+1 {
		t.Errorf("read %d records, want %d", len(all), want+1)
	}
}

// TestALostAppendToAFullBlobIsNotUnknown: a blob that takes no more blocks never takes the one that is under way. It was reported as
// unknown, so that a log could not go on.
func TestALostAppendToAFullBlobIsNotUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		client := makeLog(t, s, "start")
		s.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Op(add), Count: 1},
			aztest.Fault{Kind: aztest.Answer, Status: 409, Code: "BlockCountExceedsLimit", Match: aztest.Op(add)})
		if _, err := AppendRecord(t.Context(), client, []byte("x"), nil); !errors.Is(err, ErrFull) || errors.Is(err, optimistic.ErrOutcomeUnknown) {
			t.Errorf("err = %v, want full", err)
		}
	})
}

func TestAPositionHasATextForm(t *testing.T) {
	for _, p := range []Position{{}, {1, 0}, {2, 1234}, {999_999, 1 << 40}} {
		text, err := p.MarshalText()
		var back Position
		if err2 := back.UnmarshalText(text); err != nil || err2 != nil || back != p {
			t.Errorf("%+v is %s, %v, and back %+v, %v", p, text, err, back, err2)
		}
	}
	for _, text := range []string{"", "2", "2:3", "000002", "000002:", "000002:03", "000002:-1", "-00002:1", "1000000:1", "000000:1", "000002:1 ", " 000002:1", "000002:1x"} {
		if err := new(Position).UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "000002:1234") {
			t.Errorf("%q: err = %v", text, err)
		}
	}
}

// TestWhatALogRefuses sends nothing.
func TestWhatALogRefuses(t *testing.T) {
	s := aztest.New(nil)
	c := s.Container("box")
	s.Reset()
	for want, call := range map[string]func() error{
		"client is nil": func() error { return optest.ErrorOf(NewLog(nil, "app", nil)) },
		"name":          func() error { return optest.ErrorOf(NewLog(c, "", nil)) },
		`"app/"`:        func() error { return optest.ErrorOf(NewLog(c, "app/", nil)) },
		"MaxSize: -1":   func() error { return optest.ErrorOf(NewLog(c, "app", &LogOptions{MaxSize: -1})) },
		"MaxAge: -1s":   func() error { return optest.ErrorOf(NewLog(c, "app", &LogOptions{MaxAge: -time.Second})) },
		"Grace": func() error {
			return optest.ErrorOf(NewLog(c, "app", &LogOptions{SendOptions: optimistic.SendOptions{Grace: -1}}))
		},
		"a blob of this log (50)": func() error {
			return optest.ErrorOf(newLog(t, s, &LogOptions{MaxSize: 50}).Append(t.Context(), make([]byte, 50)))
		},
		"104857600": func() error {
			return optest.ErrorOf(newLog(t, s, nil).Append(t.Context(), make([]byte, maxAppendBlock)))
		},
		"-00001:0":  func() error { return firstError(newLog(t, s, nil), Position{Blob: -1}, nil) },
		"000000:5":  func() error { return firstError(newLog(t, s, nil), Position{Offset: 5}, nil) },
		"Poll: -1s": func() error { return firstError(newLog(t, s, nil), Position{}, &RecordsOptions{Poll: -time.Second}) },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("err = %v, want %q", err, want)
		}
	}
	if s.Requests() != 0 {
		t.Errorf("sent %v", s.Log())
	}
}

// firstError returns the error with which reading ends.
func firstError(l *Log, from Position, o *RecordsOptions) (err error) {
	for _, err = range l.Records(context.Background(), from, o) {
	}
	return err
}

// TestOldBlobsMayBeDeleted: reading begins with the first that exists, and a position in one that does not is an error.
func TestOldBlobsMayBeDeleted(t *testing.T) {
	s := aztest.New(nil)
	s.BlockBlob("box", "any")
	l := newLog(t, s, &LogOptions{MaxSize: 60})
	if err := firstError(l, Position{}, nil); !errors.Is(err, optimistic.ErrNotFound) {
		t.Errorf("no log: %v", err)
	}
	late := newLog(t, s, nil)
	var results []LogResult
	for i := range 4 {
		w := l
		if i == 0 {
			w = late
		}
		res, err := w.Append(t.Context(), fmt.Append(nil, i))
		if err != nil || res.Position.Blob != i+1 {
			t.Fatalf("record %d: %+v, %v", i, res, err)
		}
		results = append(results, res)
	}
	for n := 1; n <= 2; n++ {
		if _, err := l.part(n).Delete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if all, next := readAll(t, l, Position{}); strings.Join(all, "") != "23" || next != results[3].Next {
		t.Errorf("read %q up to %s", all, next)
	}
	for _, at := range []Position{results[0].Next, results[1].Position, {1, 0}} {
		if err := firstError(l, at, nil); !errors.Is(err, optimistic.ErrNotFound) || !strings.Contains(err.Error(), at.String()) || !strings.Contains(err.Error(), "goes on at 000003:0") {
			t.Errorf("from %s: err = %v", at, err)
		}
	}
	if err := firstError(l, Position{9, 0}, nil); !errors.Is(err, optimistic.ErrNotFound) {
		t.Errorf("from the future: err = %v", err)
	}
	if err := firstError(l, Position{4, 1000}, nil); err == nil || !strings.Contains(err.Error(), "fewer than 1000 bytes") {
		t.Errorf("past the end: err = %v", err)
	}
	if err := firstError(l, Position{4, 3}, nil); !errors.Is(err, errNotRecord) || !strings.Contains(err.Error(), "000004:3") {
		t.Errorf("within a record: err = %v", err)
	}
	if res, err := late.Append(t.Context(), []byte("late")); err != nil || res.Position.Blob != 4 {
		t.Errorf("a writer whose blob was deleted: %+v, %v", res, err)
	}
	elsewhere, err := NewLog(s.Container("none"), "app", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := elsewhere.Append(t.Context(), []byte("x")); !errors.Is(err, optimistic.ErrNotFound) {
		t.Errorf("no container: err = %v", err)
	}
}

// TestARecordThatFillsABlobIsNotAppendedTwice: an intermediary delivers the record twice, of which the first is the last block that the blob
// takes, and passes the second response on: the blob is full. The record was appended to the next blob, too.
func TestARecordThatFillsABlobIsNotAppendedTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: a blob has to be filled, and this is a short run")
	}
	for _, readable := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := aztest.New(&aztest.Options{WithoutLog: true})
			s.BlockBlob("box", "any")
			l := newLog(t, s, nil)
			fill(t, s, l, 49_998)
			if _, err := l.Append(t.Context(), []byte("last but one")); err != nil {
				t.Fatal(err)
			}
			twice := aztest.Fault{Kind: aztest.AnswerTwice, Match: aztest.Writes, Count: 1}
			if s.SetFaults(twice); !readable {
				s.SetFaults(twice, aztest.Fault{Kind: aztest.Answer, Status: 503, Code: "ServerBusy", Match: aztest.Op(get)})
			}
			res, err := l.Append(t.Context(), []byte("record"))
			s.SetFaults()
			if readable && (err != nil || res.Position.Blob != 1 || res.Requests != 2) || !readable && !errors.Is(err, optimistic.ErrOutcomeUnknown) {
				t.Errorf("readable %v: %+v, %v", readable, res, err)
			}
			all, _ := readAll(t, l, Position{})
			if n := len(all); n != 50_000 || all[n-1] != "record" || all[n-2] == "record" {
				t.Errorf("readable %v: %d records, the last of which are %q", readable, n, all[n-2:])
			}
		})
	}
}
