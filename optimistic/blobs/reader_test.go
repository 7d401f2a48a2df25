package blobs

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestAReaderThatFailsUploadsNothing: only io.EOF ends a stream. A truncated gzip and a response whose connection broke
// end with io.ErrUnexpectedEOF, which io.ReadFull also returns for content that ends within a block.
func TestAReaderThatFailsUploadsNothing(t *testing.T) {
	for _, failure := range []error{io.ErrUnexpectedEOF, fmt.Errorf("read tcp: %w", io.EOF), fmt.Errorf("read tcp: %w", io.ErrUnexpectedEOF), errors.New("disk")} {
		for _, before := range []int{0, 1, 99, 100, 101, 199, 200, 201, 250, 1000, 1050} {
			for name, from := range map[string]func() io.Reader{
				"stream":      func() io.Reader { return io.MultiReader(bytes.NewReader(noise(1, before)), iotest.ErrReader(failure)) },
				"with data":   func() io.Reader { return &failing{data: noise(1, before), err: failure} },
				"byte by one": func() io.Reader { return iotest.OneByteReader(&failing{data: noise(1, before), err: failure}) },
			} {
				s, client := optest.Quiet(t, "old")
				_, err := Upload(t.Context(), client, from(), &UploadOptions{BlockSize: 100})
				if !errors.Is(err, failure) || errors.Is(err, optimistic.ErrOutcomeUnknown) {
					t.Errorf("%s, %v after %d bytes: err = %v", name, failure, before, err)
				}
				for _, r := range s.Log() {
					if r.Op != "Put Block" || before < 200 {
						t.Errorf("%s, %v after %d bytes: sent %v", name, failure, before, r)
					}
				}
				if got := optest.Get(t, client); got != "old" {
					t.Errorf("%s, %v after %d bytes: the blob has %d bytes", name, failure, before, len(got))
				}
			}
		}
	}
}

// TestAReaderThatFailsEndsTheBlocksUnderWay: the upload waited for a block that got no response, through all of its tries.
func TestAReaderThatFailsEndsTheBlocksUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, "old")
		s.SetFaults(aztest.Fault{Kind: aztest.Hang, Match: aztest.Op("Put Block"), Count: 1})
		failure, began := errors.New("disk"), time.Now()
		_, err := Upload(t.Context(), client, &failing{data: noise(1, 250), err: failure}, &UploadOptions{BlockSize: 100})
		if !errors.Is(err, failure) || errors.Is(err, context.Canceled) || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// failing returns its error together with the last of its data, as a Reader may.
type failing struct {
	data []byte
	err  error
}

func (f *failing) Read(p []byte) (int, error) {
	n := copy(p, f.data)
	if f.data = f.data[n:]; len(f.data) == 0 {
		return n, f.err
	}
	return n, nil
}

func TestATruncatedGzipIsNotUploaded(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(noise(1, 10_000))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{1, 4, 8, 100, 5000} {
		_, client := optest.Quiet(t, "old")
		from, err := gzip.NewReader(bytes.NewReader(packed.Bytes()[:packed.Len()-cut]))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Upload(t.Context(), client, from, &UploadOptions{BlockSize: 1000}); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes missing: err = %v", cut, err)
		}
		if got := optest.Get(t, client); got != "old" {
			t.Errorf("%d bytes missing: the blob has %d bytes", cut, len(got))
		}
	}
}
