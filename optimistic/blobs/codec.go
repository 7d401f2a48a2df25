package blobs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
)

// Codec converts a value to the content of a blob and back. Its methods must be safe for concurrent use.
type Codec[T any] interface {
	// Encode returns the content for value. Equal values should have equal content, or an update that changes nothing
	// is written.
	Encode(value T) ([]byte, error)
	// Decode returns the value for content that Encode returned. The value must not share memory with data.
	Decode(data []byte) (T, error)
	// ContentType is the Content-Type of a blob that is created. An existing blob keeps its own.
	ContentType() string
}

// JSONCodec is the codec of [NewJSON]: encoding/json, without indentation. A write drops the members that T does not name.
type JSONCodec[T any] struct{}

// Encode implements Codec.
func (JSONCodec[T]) Encode(value T) ([]byte, error) { return json.Marshal(value) }

// Decode implements Codec. Numbers in an untyped T (any, map[string]any) are json.Number, so that integers beyond 2^53
// are preserved. Whatever follows the value, other than white space, is an error, because a write would drop it.
func (JSONCodec[T]) Decode(data []byte) (T, error) {
	var value T
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return value, fmt.Errorf("content is not the JSON that was expected: %w", err)
	}
	end := d.InputOffset()
	if _, err := d.Token(); err != io.EOF { // More is false before a bracket too
		return value, fmt.Errorf("content is not the JSON that was expected: more data after the value, at offset %d", end)
	}
	return value, nil
}

// ContentType implements Codec.
func (JSONCodec[T]) ContentType() string { return "application/json" }

// BytesCodec is the codec of NewBytes. It does not change the content.
type BytesCodec struct {
	// Type is the Content-Type of a blob that is created. Defaults to application/octet-stream.
	Type string
}

// Encode implements Codec.
func (BytesCodec) Encode(value []byte) ([]byte, error) { return value, nil }

// Decode implements Codec.
func (BytesCodec) Decode(data []byte) ([]byte, error) { return bytes.Clone(data), nil }

// ContentType implements Codec.
func (c BytesCodec) ContentType() string { return cmp.Or(c.Type, "application/octet-stream") }

// fingerprint stands for content in a comparison: its length and a hash under a key that only this process knows. It takes the
// place of a second copy of the content. Two contents of the same length have the same one with a probability of 2⁻⁶⁴.
type fingerprint struct {
	known bool
	size  int
	hash  uint64
}

var printSeed = maphash.MakeSeed()

func printOf(data []byte) fingerprint {
	return fingerprint{true, len(data), maphash.Bytes(printSeed, data)}
}
