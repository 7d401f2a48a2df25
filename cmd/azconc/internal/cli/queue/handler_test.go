package queue

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/proc"
)

func TestTheOutputOfSeveralCommandsIsNotMixed(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	o := &handlerOutput{to: &out, many: true}
	var all sync.WaitGroup
	const size = 3 << 20 // more than is kept in memory
	for _, c := range "abc" {
		all.Go(func() {
			err := o.run(func(w io.Writer) error {
				for range size / 1024 {
					if _, err := io.WriteString(w, strings.Repeat(string(c), 1024)); err != nil {
						return err
					}
				}
				return fmt.Errorf("the command's own %c", c)
			})
			if err == nil || !strings.Contains(err.Error(), string(c)) {
				t.Errorf("%c: %v", c, err)
			}
		})
	}
	all.Wait()
	text := out.Bytes()
	for len(text) >= size {
		if n := bytes.Count(text[:size], text[:1]); n != size {
			t.Errorf("after %d bytes of %c there is something else", n, text[0])
		}
		text = text[size:]
	}
	if out.Len() != 3*size {
		t.Errorf("%d bytes came through", out.Len())
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestOutputWithoutAReaderIsNoFailureOfTheCommand(t *testing.T) {
	for _, many := range []bool{false, true} {
		o := &handlerOutput{to: brokenPipe{}, many: many}
		if err := o.run(func(w io.Writer) error { _, err := io.WriteString(w, "done"); return err }); err != nil {
			t.Errorf("many %t: %v", many, err)
		}
	}
}

func TestHeadAndTailKeepTheirEnds(t *testing.T) {
	first, last := &proc.Head{Limit: 5}, &proc.Tail{Limit: 5}
	for _, part := range []string{"", "ab", "cdefghi", "", "jk", strings.Repeat("x", 100), "yz"} {
		fmt.Fprint(io.MultiWriter(first, last), part)
	}
	if string(first.Data) != "abcde" || first.N != 113 || !first.Cut() || last.String() != "xxxyz" || cap(last.Data) > 64 {
		t.Errorf("head %q of %d, tail %q", first.Data, first.N, last)
	}
}
func TestLinesThatSendAreReadAmongWrites(t *testing.T) {
	const insert = `{"op": "insert", "row": "r", "entity": {"n": 1}}`
	ops, sends, err := parsePrinted([]byte(insert+`
{"send": {"queue": "shipments", "body": "text\n", "id": "i", "headers": {"a": "b"}, "delay": "5m", "ttl": "1d"}}
`+insert+`{"send": {"queue": "shipments", "body": {"n": 1.0}}}`), "eu", []string{"shipments"})
	if err != nil || len(ops) != 2 || len(sends) != 2 {
		t.Fatalf("%v, %v, %v", ops, sends, err)
	}
	first, second := sends[0].message, sends[1].message
	if sends[0].queue != "shipments" || string(first.Body) != "text\n" || first.ID != "i" || first.Headers["a"] != "b" || first.Delay != 5*time.Minute || first.TTL != 24*time.Hour {
		t.Errorf("%+v", sends[0])
	}
	if string(second.Body) != `{"n": 1.0}` || second.ID != "" || second.TTL != 0 {
		t.Errorf("%+v", sends[1])
	}
	if ops, sends, err := parsePrinted([]byte(" \n"), "eu", nil); len(ops)+len(sends) != 0 || err != nil {
		t.Errorf("nothing: %v, %v, %v", ops, sends, err)
	}
}

func TestALineThatSendsAndIsWrongIsNamed(t *testing.T) {
	for line, want := range map[string]string{
		`{"send": {"queue": "others", "body": 1}}`:                                `its queue "others" is none of --send-to`,
		`{"send": {"queue": "shipments"}}`:                                        "it has no body",
		`{"send": {"queue": "shipments", "body": null}}`:                          "it has no body",
		`{"send": {"queue": "shipments", "body": 1, "bogus": 2}}`:                 `unknown member "bogus"`,
		`{"send": {"queue": "shipments", "body": 1}, "op": "insert"}`:             `unknown member "op"`,
		`{"send": "shipments"}`:                                                   `"send" cannot be`,
		`{"send": {"queue": "shipments", "body": 1, "delay": "soon"}}`:            "soon",
		`{"send": {"queue": "shipments", "body": 1, "id": ""}}`:                   "its id is empty",
		`{"send": {"queue": "shipments", "body": 1, "delay": "1d", "ttl": "1h"}}`: "beyond the delay",
		"{\"send\": {\"queue\": \"shipments\", \"body\": 1, \"id\": \"\xff\"}}":   "not UTF-8",
		`{"op": "put", "row": "1", "entity": {"PartitionKey": "us"}}`:             "PartitionKey",
		`{"op": "put", "row": "1", "entity": {"n": 1}, "if_match": ""}`:           "if_match is empty",
		`{"sned": {"queue": "shipments", "body": 1}}`:                             "is not a write",
		`{"send": {"queue": "shipments", "body": 1}} no`:                          "is not a write",
	} {
		_, _, err := parsePrinted([]byte(line), "eu", []string{"shipments"})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "nothing was written") {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
