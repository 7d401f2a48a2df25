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
