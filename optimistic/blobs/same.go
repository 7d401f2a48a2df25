package blobs

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"reflect"
	"sync/atomic"
)

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

// encodings remembers content that this process has encoded as JSON. Its own encoding is itself, so a different encoding
// is a different value: nothing has to be decoded to find out. Of what is not remembered, nothing is concluded.
var encodings [1 << 12]atomic.Uint64

// encodingOf returns the hash under which the content of a T is remembered, which is never 0.
func encodingOf[T any](data []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(printSeed)
	maphash.WriteComparable(&h, reflect.TypeFor[T]())
	_, _ = h.Write(data)
	return h.Sum64() | 1
}

func remembered[T any](data []byte) bool {
	h := encodingOf[T](data)
	return encodings[h>>1%uint64(len(encodings))].Load() == h
}

// remember remembers the encoding of value, unless decoding and encoding it again could give another one: a struct in an
// interface returns as a map, whose members are sorted, and a string that is not UTF-8 returns with other bytes.
func remember[T any](value T, data []byte) {
	if jsonTraitsOf(reflect.TypeFor[T]()).untyped && !plain(value) || bytes.Contains(data, replaced) {
		return
	}
	h := encodingOf[T](data)
	encodings[h>>1%uint64(len(encodings))].Store(h)
}

// replaced is what encoding/json writes for bytes that are not UTF-8.
var replaced = []byte(`\ufffd`)

// plain reports whether value is of the types that encoding/json decodes to where the type does not say.
func plain(value any) bool {
	switch v := value.(type) {
	case nil, string, bool, json.Number, float64, int, int64:
		return true
	case []any:
		for _, one := range v {
			if !plain(one) {
				return false
			}
		}
		return true
	case map[string]any:
		for _, one := range v {
			if !plain(one) {
				return false
			}
		}
		return true
	}
	return false
}
