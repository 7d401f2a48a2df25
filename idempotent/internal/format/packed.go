package format

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
)

// Packed says where the body of a message is that does not fit as it is: here, compressed, or in a blob. It contains no
// secret: a blob is named, and reading it needs permission.
type Packed struct {
	Gzip      []byte `json:"gzip,omitempty"`      // the body, compressed
	Container string `json:"container,omitempty"` // otherwise: where the blob is
	Blob      string `json:"blob,omitempty"`
	Bytes     int    `json:"bytes,omitempty"`      // of the blob
	Zipped    bool   `json:"compressed,omitempty"` // the blob is gzip
	Length    int    `json:"length"`               // of the body
	SHA256    []byte `json:"sha256"`               // of the body
}

// Describe returns the facts about a body, wherever it is stored.
func Describe(body []byte) Packed {
	sum := sha256.Sum256(body)
	return Packed{Length: len(body), SHA256: sum[:]}
}

// Compress returns body compressed with gzip.
func Compress(body []byte) ([]byte, error) {
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

// Unpack restores the body from what was stored, and verifies it against the recorded facts. It never decompresses more
// than the recorded length. After an error, no retry will help.
func (p Packed) Unpack(kept []byte, zipped bool) ([]byte, error) {
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
