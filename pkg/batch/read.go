package batch

import (
	"bytes"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// successes reads a response to its end in which every operation has succeeded, and returns the new ETags. ok is false for any
// other response: a refusal, one that was cut short, and one in a form that is not expected.
func successes(contentType string, text []byte, actions []aztables.TransactionAction) (etags []azcore.ETag, ok bool) {
	_, outer, found := strings.Cut(contentType, "boundary=")
	if outer = strings.Trim(outer, `"`); !found || outer == "" || strings.ContainsAny(outer, `;" `) {
		return nil, false
	}
	l := lines{text}
	if line, whole := l.next(); !whole || !delimits(line, outer) {
		return nil, false
	}
	inner := ""
	for {
		line, whole := l.next()
		if !whole {
			return nil, false
		}
		if len(line) == 0 {
			break
		}
		if value, is := header(line, "content-type"); is {
			_, boundary, _ := bytes.Cut(value, []byte("boundary="))
			inner = string(bytes.Trim(boundary, `"`))
		}
	}
	if line, whole := l.next(); inner == "" || !whole || !delimits(line, inner) {
		return nil, false
	}
	etags = make([]azcore.ETag, 0, len(actions))
	for len(etags) < len(actions) {
		etag, last, ok := l.success(inner)
		if !ok || etag == "" && actions[len(etags)].ActionType != aztables.TransactionTypeDelete {
			return nil, false
		}
		if etags = append(etags, etag); last != (len(etags) == len(actions)) {
			return nil, false
		}
	}
	for {
		line, whole := l.next()
		if ends(line, outer) {
			return etags, true // the last line may have no end
		}
		if !whole || len(line) > 0 {
			return nil, false
		}
	}
}

// success reads one part, up to the boundary after it. last means that no other part follows.
func (l *lines) success(boundary string) (etag azcore.ETag, last, ok bool) {
	for { // the headers of the part
		line, whole := l.next()
		if !whole {
			return "", false, false
		}
		if len(line) == 0 {
			break
		}
	}
	status, whole := l.next()
	if !whole || len(status) < len("HTTP/1.1 204") || !bytes.HasPrefix(status, []byte("HTTP/1.1 2")) {
		return "", false, false
	}
	for { // those of the response
		line, whole := l.next()
		if !whole {
			return "", false, false
		}
		if len(line) == 0 {
			break
		}
		if value, is := header(line, "etag"); is {
			etag = azcore.ETag(value)
		}
	}
	for { // its content, of which there is none
		line, whole := l.next()
		switch {
		case delimits(line, boundary) && whole:
			return etag, false, true
		case ends(line, boundary) && whole:
			return etag, true, true
		case !whole, len(line) > 0:
			return "", false, false
		}
	}
}

func delimits(line []byte, boundary string) bool {
	return len(line) == 2+len(boundary) && string(line[:2]) == "--" && string(line[2:]) == boundary
}

func ends(line []byte, boundary string) bool {
	return bytes.HasSuffix(line, []byte("--")) && delimits(line[:len(line)-2], boundary)
}

// lines reads a text line by line.
type lines struct{ rest []byte }

// next returns the next line. whole is false if the text ends in it.
func (l *lines) next() (line []byte, whole bool) {
	line, l.rest, whole = bytes.Cut(l.rest, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), whole
}

// header returns the value of a header if the line has it. The name is in lower case.
func header(line []byte, name string) (value []byte, is bool) {
	if len(line) <= len(name) || line[len(name)] != ':' || !strings.EqualFold(string(line[:len(name)]), name) {
		return nil, false
	}
	return bytes.TrimSpace(line[len(name)+1:]), true
}
