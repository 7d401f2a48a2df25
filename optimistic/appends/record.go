package appends

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"

	"github.com/azconc/azconc/optimistic/internal/protocol"
)

// Record is one record that AppendRecord wrote to an append blob.
type Record struct {
	ID     string // AppendResult.ID of its append
	Offset int64  // of its frame in the blob
	Data   []byte
}

// recordMark begins every record. A frame is
//
//	azconc-record <id> <length of the data in bytes>\n<data>\n
//
// which keeps a blob of text records readable. There is no checksum, because the service stores a block whole or not at
// all.
const recordMark = "azconc-record"

// AppendRecord appends data in a frame with an id of its own, so that no two appends have the same bytes. That makes
// every outcome provable: after a lost response AppendRecord looks for the id at its position, and success means
// exactly one record, whatever other appenders write. Records reads the records back. Errors and cost are those of
// Append; the frame takes up to 64 bytes of the 100 MiB.
func AppendRecord(ctx context.Context, client *appendblob.Client, data []byte, opts *AppendOptions) (AppendResult, error) {
	id := protocol.NewWriteID()
	return appendTo(ctx, client, id, frame(id, data), opts)
}

func frame(id string, data []byte) []byte {
	framed := fmt.Appendf(make([]byte, 0, len(data)+64), "%s %s %d\n", recordMark, id, len(data))
	framed = append(framed, data...)
	return append(framed, '\n')
}

// Records reads the records of an append blob from the beginning of r, or from a record's Offset; offsets then count
// from there. The sequence ends with the first error: io.ErrUnexpectedEOF if r ends within a record, as it may if r was
// limited to a length that was read earlier. The caller owns each record's Data.
func Records(r io.Reader) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		in := bufio.NewReader(r)
		for offset := int64(0); ; {
			record, size, err := readRecord(in)
			if ended(err) {
				return
			}
			if err != nil {
				yield(Record{}, fmt.Errorf("record at offset %d: %w", offset, err))
				return
			}
			record.Offset = offset
			if !yield(record, nil) {
				return
			}
			offset += size
		}
	}
}

var errNotRecord = errors.New("not a record that AppendRecord wrote")

// ended reports whether err is the end of a stream. An error around io.EOF is not: the reader has failed.
func ended(err error) bool { return err == io.EOF } //nolint:errorlint // see above

// maxRecordHeader bounds the first line: the mark, an id, a length.
const maxRecordHeader = 64

func readRecord(in *bufio.Reader) (Record, int64, error) {
	header, err := in.Peek(maxRecordHeader)
	if err != nil && !ended(err) {
		return Record{}, 0, err
	}
	if len(header) == 0 {
		return Record{}, 0, io.EOF
	}
	end := bytes.IndexByte(header, '\n')
	if end < 0 {
		if strings.HasPrefix(recordMark, string(header[:min(len(header), len(recordMark))])) && ended(err) {
			return Record{}, 0, io.ErrUnexpectedEOF
		}
		return Record{}, 0, errNotRecord
	}
	fields := strings.Split(string(header[:end]), " ")
	if len(fields) != 3 || fields[0] != recordMark || fields[1] == "" {
		return Record{}, 0, errNotRecord
	}
	n, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || n < 0 || n > maxAppendBlock || strconv.FormatInt(n, 10) != fields[2] {
		return Record{}, 0, errNotRecord
	}
	_, _ = in.Discard(end + 1) // cannot fail after Peek
	// Grow the buffer with the data: a wrong length must not allocate that much memory.
	var data bytes.Buffer
	if _, err := io.CopyN(&data, in, n+1); ended(err) {
		return Record{}, 0, io.ErrUnexpectedEOF
	} else if err != nil {
		return Record{}, 0, err
	}
	if data.Bytes()[n] != '\n' {
		return Record{}, 0, errNotRecord
	}
	return Record{ID: fields[1], Data: data.Bytes()[:n:n]}, int64(end) + 1 + n + 1, nil
}
