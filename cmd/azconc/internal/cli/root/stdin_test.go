package root

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestStdinThatFailsStoresNothing: every verb that takes --file - reads it to its end, and only io.EOF is one.
func TestStdinThatFailsStoresNothing(t *testing.T) {
	s := aztest.New(nil)
	blob := s.BlockBlob("jobs", "a")
	if _, err := blob.UploadBuffer(t.Context(), []byte("old"), nil); err != nil {
		t.Fatal(err)
	}
	s.Queue("orders")
	s.Table("jobs")
	for _, size := range []int{0, 2, 9 << 20} { // none, a part of one request, a part of the second block
		for _, failure := range []error{io.ErrUnexpectedEOF, fmt.Errorf("read |0: %w", io.EOF)} {
			for _, args := range []string{
				"blob put jobs/a --file -", "blob update jobs/a --file -", "blob append jobs/log --create --file -", "blob block put jobs/a --id 1 --file -",
				"queue send orders --file -", "table insert jobs/eu/17 --file -", "table transact jobs/eu --file -",
			} {
				s.Reset()
				r := runOn(t.Context(), s, func(s *cli.Streams) {
					s.In = io.MultiReader(bytes.NewReader(bytes.Repeat([]byte("{}"), size/2)), iotest.ErrReader(failure))
				}, nil, strings.Fields(args)...)
				tooLong := r.code == fail.ExitUsage && strings.Contains(r.stderr, "is longer than")
				if !tooLong && (r.code != fail.ExitFailed || !strings.Contains(r.stderr, failure.Error())) {
					t.Errorf("%s, %v after %d bytes: exit %d, %s", args, failure, size, r.code, r.stderr)
				}
				for _, q := range s.Log() {
					if q.Method != http.MethodGet && q.Method != http.MethodHead {
						t.Errorf("%s, %v after %d bytes: sent %v", args, failure, size, q)
					}
				}
			}
		}
	}
}
