package idempotent

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
)

// packed says how to get the body of a message that it does not fit into as it is: from here, compressed, or from a blob.
// Nothing of it is secret: a blob is named, and whoever wants to read it must be allowed to.
type packed struct {
	Gzip      []byte `json:"gzip,omitempty"`      // the body, compressed
	Container string `json:"container,omitempty"` // otherwise: where the blob is
	Blob      string `json:"blob,omitempty"`
	Bytes     int    `json:"bytes,omitempty"`      // of the blob
	Zipped    bool   `json:"compressed,omitempty"` // the blob is gzip
	Length    int    `json:"length"`               // of the body
	SHA256    []byte `json:"sha256"`               // of the body
}

// describe is what is known of a body wherever it is kept.
func describe(body []byte) packed {
	sum := sha256.Sum256(body)
	return packed{Length: len(body), SHA256: sum[:]}
}

// compress returns gzip of body.
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

// unpack makes the body of what was kept, and holds it against what is known of it. It never makes more than that. An
// error means that no retry will help.
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
		return nil, fmt.Errorf("the body does not have the %d bytes that were sent", p.Length)
	}
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], p.SHA256) {
		return nil, fmt.Errorf("the body is not what was sent: its SHA-256 is %x, not %x", sum, p.SHA256)
	}
	return body, nil
}
