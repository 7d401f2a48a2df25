package queue

import (
	"strings"
	"testing"
	"time"
)

func TestLinesThatSendAreReadAmongWrites(t *testing.T) {
	const insert = `{"op": "insert", "row": "r", "entity": {"n": 1}}`
	ops, sends, err := parsePrinted([]byte(insert+`
{"send": {"queue": "shipments", "body": "text\n", "id": "i", "headers": {"a": "b"}, "delay": "5m", "ttl": "1d"}}
`+insert+`{"send": {"queue": "shipments", "body": {"n": 1.0}}}`), []string{"shipments"})
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
	if ops, sends, err := parsePrinted([]byte(" \n"), nil); len(ops)+len(sends) != 0 || err != nil {
		t.Errorf("nothing: %v, %v, %v", ops, sends, err)
	}
}

func TestALineThatSendsAndIsWrongIsNamed(t *testing.T) {
	for line, want := range map[string]string{
		`{"send": {"queue": "others", "body": 1}}`:                     `its queue "others" is none of --send-to`,
		`{"send": {"queue": "shipments"}}`:                             "it has no body",
		`{"send": {"queue": "shipments", "body": null}}`:               "it has no body",
		`{"send": {"queue": "shipments", "body": 1, "bogus": 2}}`:      `unknown member "bogus"`,
		`{"send": {"queue": "shipments", "body": 1}, "op": "insert"}`:  `unknown member "op"`,
		`{"send": "shipments"}`:                                        `"send" cannot be`,
		`{"send": {"queue": "shipments", "body": 1, "delay": "soon"}}`: "soon",
		`{"sned": {"queue": "shipments", "body": 1}}`:                  "is not a write",
		`{"send": {"queue": "shipments", "body": 1}} no`:               "is not a write",
	} {
		_, _, err := parsePrinted([]byte(line), []string{"shipments"})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "nothing was written") {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
