package azurite

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// outputLimit is the number of bytes of a process's output that are kept for error texts.
const outputLimit = 4 << 10

var listening = regexp.MustCompile(`^Azurite (Blob|Queue|Table) service is successfully listening at (http://\S+)`)

// output receives Azurite's output. It finds the addresses in it and keeps its end.
type output struct {
	ready chan struct{} // closed when all three addresses are known

	mu   sync.Mutex
	line []byte            // guarded by mu: the text after the last newline
	tail []byte            // guarded by mu
	urls map[string]string // guarded by mu: by the name of the service
}

func newOutput() *output {
	return &output{ready: make(chan struct{}), urls: make(map[string]string)}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail = append(o.tail, p...)
	if extra := len(o.tail) - outputLimit; extra > 0 {
		o.tail = append(o.tail[:0], o.tail[extra:]...)
	}
	if len(o.urls) == len(services) {
		return len(p), nil
	}
	o.line = append(o.line, p...)
	for {
		line, rest, found := bytes.Cut(o.line, []byte("\n"))
		if !found {
			return len(p), nil
		}
		o.line = rest
		if m := listening.FindSubmatch(line); m != nil {
			if o.urls[string(m[1])] = string(m[2]); len(o.urls) == len(services) {
				close(o.ready)
				o.line = nil
				return len(p), nil
			}
		}
	}
}

func (o *output) url(service string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.urls[service]
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(o.tail), ""))
}
