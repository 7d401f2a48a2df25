package optimistic

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// JSON is the codec of JSONBlob: encoding/json, without indentation. A write loses members that T does not name; use
// map[string]any or json.RawMessage if other programs own parts of the document.
type JSON[T any] struct{}

// Encode implements Codec.
func (JSON[T]) Encode(value T) ([]byte, error) { return json.Marshal(value) }

// Decode implements Codec. Numbers in an untyped T (any, map[string]any) are json.Number, so that integers beyond 2^53
// are preserved.
func (JSON[T]) Decode(data []byte) (T, error) {
	var value T
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return value, fmt.Errorf("content is not the JSON that was expected: %w", err)
	}
	if d.More() {
		return value, fmt.Errorf("content is not the JSON that was expected: more data after the value, at offset %d", d.InputOffset())
	}
	return value, nil
}

// ContentType implements Codec.
func (JSON[T]) ContentType() string { return "application/json" }

// Bytes is the codec of BytesBlob. It does not change the content.
type Bytes struct{}

// Encode implements Codec.
func (Bytes) Encode(value []byte) ([]byte, error) { return value, nil }

// Decode implements Codec.
func (Bytes) Decode(data []byte) ([]byte, error) { return bytes.Clone(data), nil }

// ContentType implements Codec.
func (Bytes) ContentType() string { return "application/octet-stream" }
