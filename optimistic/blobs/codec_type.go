package blobs

// Codec turns a value into the content of a blob and back.
type Codec[T any] interface {
	Encode(value T) ([]byte, error)
	Decode(data []byte) (T, error)
	// ContentType is the Content-Type of a blob that is created. An existing blob keeps its own.
	ContentType() string
}
