package idempotent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/idempotent/internal/queues"
)

// full is a message with all that an envelope can carry, but for the body.
func full(m format.Message) format.Message {
	at := time.Date(2026, 11, 21, 4, 13, 4, 5, time.UTC)
	m.ID, m.Sent, m.Headers = "order 17/ü", at, map[string]string{"a": "<b>"}
	m.Attempts, m.Excused, m.Unfinished, m.LastError, m.Buried = 1, 2, 3, "no such order", true
	m.Poison = &format.Poison{Reason: "failed 5 times", Queue: "orders", MessageID: "a27e57a2", Inserted: at, Expires: at.Add(queues.Week), Deliveries: 6}
	return m
}

var packedInBlob = format.Packed{Container: "account/bodies", Blob: "azconcclaim/orders/m-00", Bytes: 70_000, Zipped: true, Length: 140_000, SHA256: []byte{1, 2}}

// TestTheStoredFormats pins all that a message and a marker can hold, and the names of what is stored: other versions have to
// read it. A change of testdata/formats.txt needs a test that each version reads what the other writes. What the shell's tests
// pin, in TestGoldenStored, is what is stored in the usual cases.
func TestTheStoredFormats(t *testing.T) {
	var b strings.Builder
	say := func(what, text string) { fmt.Fprintf(&b, "%s\n    %s\n", what, text) }
	for _, m := range []struct {
		name string
		m    format.Message
	}{
		{"message", format.Message{ID: "m", Sent: time.Unix(0, 0).UTC(), Body: []byte("hello")}},
		{"message, full", full(format.Message{Body: []byte("é<&\x00\uffff")})},
		{"message, binary", format.Message{ID: "m", Body: []byte{0xff, 0}}},
		{"message, compressed", format.Message{ID: "m", Packed: &format.Packed{Gzip: []byte{31, 139}, Length: 70_000, SHA256: []byte{1, 2}}}},
		{"message, in a blob", format.Message{ID: "m", Packed: &packedInBlob}},
	} {
		text, err := m.m.Encode(format.Envelope)
		if err != nil {
			t.Fatal(err)
		}
		say(m.name, text)
	}
	for _, m := range []struct {
		name string
		m    markers.Marker
	}{
		{"marker", markers.Marker{Owner: "a27e57a2", State: markers.Owned, Expires: time.Unix(0, 1000), Until: time.Unix(300, 0)}},
		{"marker, full", markers.Marker{Owner: "a27e57a2", State: markers.Done, Expires: time.Unix(0, 0), Until: time.Unix(300, 0), Buried: true, Result: []byte("r"),
			Counts: format.Counts{Attempts: 1, Excused: 2, Unfinished: 3}}},
	} {
		text, err := m.m.Encode("p", "r")
		if err != nil {
			t.Fatal(err)
		}
		say(m.name, string(text))
	}

	const v7 = "019aa3c5-8a00-7000-8000-000000000000"
	long := strings.Repeat("長", 66)
	for _, key := range []string{"order 17/ü", v7, long} {
		say("marker of "+key, markers.PartitionOf("account/orders", key)+" "+markers.RowOf(key))
		say("inbox marker of "+key, inboxRow(&Message{Key: key, Queue: "account/orders"}))
		say("what follows from "+key, outboxRows(&Message{Key: key, Queue: "account/orders"}))
		say("result of Once for "+key, markers.RowUnder("", "!", key))
	}
	say("body", bodyName("orders", "order 17/ü", make([]byte, 32)))

	want, err := os.ReadFile(filepath.Join("testdata", "formats.txt"))
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("-testdata/formats.txt +stored:\n%s\n%s", diff, b.String())
	}
}
