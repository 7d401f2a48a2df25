package blobservice

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// FuzzTagCondition reads any text as a condition on tags.
func FuzzTagCondition(f *testing.F) {
	for _, seed := range []string{`"a" = 'b'`, `"a" > 'b' AND ("c" <> 'd' OR "e" <= 'f')`, `"it""s" = 'it''s'`, "\"\">''\r", "\"a\"='b'\u00a0"} {
		f.Add(seed)
	}
	tags := []map[string]string{nil, {"a": "b"}, {"c": "x", "e": ""}}
	f.Fuzz(func(t *testing.T, text string) {
		matches, err := parseTags(text)
		if err != nil {
			return
		}
		same, err := parseTags("(" + text + ")")
		if err != nil {
			t.Fatalf("%q is a condition, in parentheses it is none: %v", text, err)
		}
		for _, one := range tags {
			if matches(one) != same(one) {
				t.Errorf("%q says %t about %v, in parentheses %t", text, matches(one), one, same(one))
			}
		}
	})
}

// FuzzRange reads any range of a blob: it is the bytes that it names, or refused; what is no range is ignored.
func FuzzRange(f *testing.F) {
	for _, seed := range []string{"bytes=0-3", "bytes=2-", "bytes=9-10", "bytes=3-2", "bytes=-1", "bytes=0-99999999999999999999"} {
		f.Add(seed)
	}
	content := []byte("0123456789")
	f.Fuzz(func(t *testing.T, header string) {
		a := getBlob(&storage.Request{Header: http.Header{"Range": {header}}}, &blobState{kind: "BlockBlob", content: content})
		var first, last, size int
		switch {
		case a.Status == http.StatusOK && bytes.Equal(a.Body, content):
			if _, _, err := storage.ParseRange(header); err == nil {
				t.Errorf("%q is ignored", header)
			}
		case a.Status == http.StatusRequestedRangeNotSatisfiable:
		case a.Status == http.StatusPartialContent:
			n, err := fmt.Sscanf(a.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size)
			if err != nil || n != 3 || size != len(content) || !bytes.Equal(a.Body, content[first:last+1]) {
				t.Errorf("%q: %s with %q", header, a.Header.Get("Content-Range"), a.Body)
			}
		default:
			t.Errorf("%q: %d with %q", header, a.Status, a.Body)
		}
	})
}
