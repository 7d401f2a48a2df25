package aztest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/azconc/azconc/pkg/aztest/internal/blobservice"
	"github.com/azconc/azconc/pkg/aztest/internal/queueservice"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// ask sends a request as it is, with pairs of names and values as its header, and returns what is answered, with the body.
func ask(tb testing.TB, s *Service, method, at, body string, header ...string) (*http.Response, []byte) {
	tb.Helper()
	r, err := http.NewRequest(method, "http://"+at, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	r.Header.Set("Authorization", "SharedKey x")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	a, err := s.Do(r)
	if err != nil {
		tb.Fatal(err)
	}
	said, err := io.ReadAll(a.Body)
	if err != nil {
		tb.Fatal(err)
	}
	s.Reset()
	return a, said
}

// withBlobs is an account with a block blob for each pair of its name and its tags.
func withBlobs(tb testing.TB, content string, tags map[string]string) (s *Service, at string) {
	tb.Helper()
	s, at = New(nil), blobservice.Host+"/"+Account+"/box/"
	s.BlockBlob("box", "b")
	for name, tags := range tags {
		if a, said := ask(tb, s, http.MethodPut, at+name, content, "x-ms-blob-type", "BlockBlob", "x-ms-tags", tags); a.StatusCode != http.StatusCreated {
			tb.Fatalf("%d %s", a.StatusCode, said)
		}
	}
	return s, at
}

// FuzzTagCondition gives any text as a condition on tags. Parentheses change nothing.
func FuzzTagCondition(f *testing.F) {
	for _, seed := range []string{`"a" = 'b'`, `"a" > 'b' AND ("c" <> 'd' OR "e" <= 'f')`, `"it""s" = 'it''s'`, "\"\">''\r", "\"a\"='b'\u00a0"} {
		f.Add(seed)
	}
	blobs := map[string]string{"none": "", "one": "a=b", "two": "c=x&e="}
	s, at := withBlobs(f, "x", blobs)
	f.Fuzz(func(t *testing.T, text string) {
		for name, tags := range blobs {
			a, _ := ask(t, s, http.MethodHead, at+name, "", "x-ms-if-tags", text)
			same, _ := ask(t, s, http.MethodHead, at+name, "", "x-ms-if-tags", "("+text+")")
			if a.StatusCode != http.StatusBadRequest && text != "" && same.StatusCode != a.StatusCode {
				t.Errorf("%q is answered with %d for the tags %q, and in parentheses with %d", text, a.StatusCode, tags, same.StatusCode)
			}
		}
	})
}

// FuzzRange asks for any range of a blob: it is the bytes that it names, or refused; what is no range is ignored.
func FuzzRange(f *testing.F) {
	for _, seed := range []string{"bytes=0-3", "bytes=2-", "bytes=9-10", "bytes=3-2", "bytes=-1", "bytes=0-99999999999999999999"} {
		f.Add(seed)
	}
	const content = "0123456789"
	s, at := withBlobs(f, content, map[string]string{"b": ""})
	f.Fuzz(func(t *testing.T, header string) {
		a, body := ask(t, s, http.MethodGet, at+"b", "", "Range", header)
		var first, last, size int
		switch {
		case a.StatusCode == http.StatusOK && string(body) == content:
			if _, _, err := storage.ParseRange(header); err == nil {
				t.Errorf("%q is ignored", header)
			}
		case a.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		case a.StatusCode == http.StatusPartialContent:
			n, err := fmt.Sscanf(a.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size)
			if err != nil || n != 3 || size != len(content) || string(body) != content[first:last+1] {
				t.Errorf("%q: %s with %q", header, a.Header.Get("Content-Range"), body)
			}
		default:
			t.Errorf("%q: %d with %q", header, a.StatusCode, body)
		}
	})
}

// TestATimeToLiveThatOverflowsIsRefused: in nanoseconds it is negative or small, so the message would be gone early.
func TestATimeToLiveThatOverflowsIsRefused(t *testing.T) {
	s := New(nil)
	s.Queue("orders")
	for text, status := range map[string]int{
		"9223372036854775807": 400, "18446744074": 400, "-9223372036854775807": 400, "-18446744074": 400, "-2": 400,
		"-1": 201, "604800": 201, "2147483647": 201,
	} {
		a, said := ask(t, s, http.MethodPost, queueservice.Host+"/"+Account+"/orders/messages?messagettl="+text, "<QueueMessage><MessageText>x</MessageText></QueueMessage>")
		if a.StatusCode != status {
			t.Errorf("messagettl=%s: %d %s, want %d", text, a.StatusCode, said, status)
		}
	}
}
