package idempotent

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/azconc/azconc/pkg/azerr"
)

// excused is an error that keeps a handler from running and is not the message's fault: neither the attempt nor the
// delivery counts.
type excused struct{ err error }

func (e *excused) Error() string { return e.err.Error() }
func (e *excused) Unwrap() error { return e.err }

// resolve loads the body of a message that does not contain it. The error determines what happens to the message, as a
// handler's does.
func (c *Consumer) resolve(ctx context.Context, d *delivery) error {
	p := d.e.Packed
	if p == nil {
		return nil
	}
	var err error
	switch k := c.o.ClaimCheck; {
	case p.Blob == "":
		if d.m.Body, err = p.unpack(p.Gzip, true); err != nil {
			err = &bodyLost{err}
		}
	case k == nil:
		err = fmt.Errorf("%w: %s/%s", ErrNoClaimCheck, p.Container, p.Blob)
	case k.path != p.Container:
		err = fmt.Errorf("%w: %s/%s is not in container %s", ErrNoClaimCheck, p.Container, p.Blob, k.path)
	default:
		if d.m.Body, err = k.fetch(ctx, *p); err != nil {
			err = k.failed(*p, err)
		}
		if noSuchBlob(err) && c.o.Applied != nil {
			// A body is deleted after the effect, so the answer is final.
			switch applied, asked := c.o.Applied(ctx, d.m); {
			case asked != nil:
				err = asked
			case applied:
				return fmt.Errorf("%w: %s, whose body is gone", ErrAlreadyApplied, d.m.Key)
			}
		}
	}
	if _, lost := errors.AsType[*bodyLost](err); lost {
		return Poison(err)
	}
	if err == nil || ctx.Err() != nil { // the end of ctx is dealt with elsewhere
		return err
	}
	return &excused{err}
}

// failed marks an error of the container as not the message's fault.
func (k *ClaimCheck) failed(p packed, err error) error {
	if _, lost := errors.AsType[*bodyLost](err); lost {
		return err
	}
	return &outage{err, func(ctx context.Context) error {
		_, err := k.container.NewBlobClient(p.Blob).GetProperties(ctx, nil)
		if noSuchBlob(err) || azerr.Classify(err).Code == "" && azerr.Classify(err).Status == http.StatusNotFound { // HEAD has no body, and a proxy no code
			return nil
		}
		return azerr.Clean(err)
	}}
}

// packed says where the body of a message is that does not fit as it is: here, compressed, or in a blob. It contains no
// secret: a blob is named, and reading it needs permission.
type packed struct {
	Gzip      []byte `json:"gzip,omitempty"`      // the body, compressed
	Container string `json:"container,omitempty"` // otherwise: where the blob is
	Blob      string `json:"blob,omitempty"`
	Bytes     int    `json:"bytes,omitempty"`      // of the blob
	Zipped    bool   `json:"compressed,omitempty"` // the blob is gzip
	Length    int    `json:"length"`               // of the body
	SHA256    []byte `json:"sha256"`               // of the body
}

// describe returns the facts about a body, wherever it is stored.
func describe(body []byte) packed {
	sum := sha256.Sum256(body)
	return packed{Length: len(body), SHA256: sum[:]}
}

// compress returns body compressed with gzip.
func compress(body []byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// unpack restores the body from what was stored, and verifies it against the recorded facts. It never decompresses more
// than the recorded length. After an error, no retry will help.
func (p packed) unpack(kept []byte, zipped bool) ([]byte, error) {
	body := kept
	if zipped {
		r, err := gzip.NewReader(bytes.NewReader(kept))
		if err != nil {
			return nil, fmt.Errorf("the body is not gzip: %w", err)
		}
		if body, err = io.ReadAll(io.LimitReader(r, int64(p.Length)+1)); err != nil {
			return nil, fmt.Errorf("the body cannot be decompressed: %w", err)
		}
	}
	if len(body) != p.Length {
		return nil, fmt.Errorf("the body does not have the original length of %d bytes", p.Length)
	}
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], p.SHA256) {
		return nil, fmt.Errorf("the body differs from the one that was sent: its SHA-256 is %x, not %x", sum, p.SHA256)
	}
	return body, nil
}
