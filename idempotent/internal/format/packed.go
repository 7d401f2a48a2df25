package format

import (
	"bytes"
	"cmp"
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

// Compress returns body compressed with gzip, or nil if that is not shorter. It takes as much memory as the body.
func Compress(body []byte) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, len(body)+len(body)/1000+1<<10)) // gzip makes no body longer by more
	w := gzip.NewWriter(b)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil || b.Len() >= len(body) {
		return nil, err
	}
	return b.Bytes(), nil
}

// Damaged is an error of what is stored: no retry will help.
type Damaged struct{ Err error }

func (e *Damaged) Error() string { return e.Err.Error() }
func (e *Damaged) Unwrap() error { return e.Err }

func damaged(format string, args ...any) error { return &Damaged{fmt.Errorf(format, args...)} }

// Inflate restores a body that is in the message. The error is a *Damaged.
func (p Packed) Inflate() ([]byte, error) {
	return p.unpack(&stored{from: bytes.NewReader(p.Gzip), left: len(p.Gzip)}, true)
}

// Read restores a body from its blob, which from reads. It takes no more memory than the body. The error is a *Damaged if the
// blob is not what was stored; otherwise it is that of from, and io.ErrUnexpectedEOF if from ends early.
func (p Packed) Read(from io.Reader) ([]byte, error) {
	return p.unpack(&stored{from: from, left: p.Bytes}, p.Zipped)
}

// mostInflated bounds how many times longer than its compressed form a body is (RFC 1951: 258 bytes take at least 2 bits).
const mostInflated = 1032

// unpack restores the body from what was stored, and verifies it against the recorded facts.
func (p Packed) unpack(s *stored, zipped bool) ([]byte, error) {
	wrong := damaged("the body does not have the original length of %d bytes", p.Length)
	if p.Length < 0 || p.Length/mostInflated > s.left {
		return nil, wrong
	}
	var from io.Reader = s
	if zipped {
		r, err := gzip.NewReader(s)
		if err != nil {
			return nil, cmp.Or(s.err, damaged("the body is not gzip: %v", err))
		}
		from = r
	}
	body := make([]byte, p.Length+1)
	n, err := io.ReadFull(from, body)
	switch {
	case s.err != nil:
		return nil, s.err
	case err != nil && err != io.EOF && err != io.ErrUnexpectedEOF:
		return nil, damaged("the body cannot be decompressed: %v", err)
	case n != p.Length:
		return nil, wrong
	}
	body = body[:n]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], p.SHA256) {
		return nil, damaged("the body differs from the one that was sent: its SHA-256 is %x, not %x", sum, p.SHA256)
	}
	return body, nil
}

// stored reads what was stored, of known length.
type stored struct {
	from io.Reader
	left int
	err  error // why it cannot be read, if it cannot
}

func (s *stored) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	s.left -= n
	if err == io.EOF && s.left > 0 {
		err = io.ErrUnexpectedEOF // the response was cut off
	}
	if err != io.EOF {
		s.err = err
	}
	return n, err
}
