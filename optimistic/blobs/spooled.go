package blobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
)

// Spooled is the content of a block blob as a Target, of which only a buffer is in memory: content of more than 1 MiB is in
// a file. It reads and writes as a Blob of bytes does, with the same requests. Each read makes a new file, which only its
// owner can read.
//
// A change reads the file that it is given, and sets the value to other content. That must stay as it is until the call has
// returned, or the change runs again: each try of the write reads it. Azure takes content of up to 5,000 MiB in one
// write (REST: "Put Blob").
type Spooled struct {
	// Blob is the blob. Its Codec is not used, except for the Content-Type of a blob that has none; nil means
	// BytesCodec. Its MaxSize bounds the file.
	Blob Blob[[]byte]

	// Dir is the directory of the files, required: it belongs to the caller, who removes it, or the files, afterwards.
	Dir string

	optimistic.Sealed[Content]
}

// Content is content in memory or in a file. The zero value is empty.
type Content struct {
	Data []byte
	Path string // of a file that holds the content, in place of Data
}

// spoolAbove is the length of content, in bytes, above which it is in a file.
const spoolAbove = 1 << 20

func (s Spooled) Resource() string { return s.Blob.Resource() }

func (s Spooled) protocol() any {
	if s.Blob.Codec == nil {
		s.Blob.Codec = BytesCodec{}
	}
	return spooledTarget{contentTarget[[]byte]{s.Blob}, s.Dir}
}

// spooledTarget is a Spooled to the operations of package optimistic.
type spooledTarget struct {
	blob contentTarget[[]byte]
	dir  string
}

var errNoDir = errors.New("Spooled.Dir is empty: it is the directory of the files, which the caller removes")

func (s spooledTarget) Resource() string { return s.blob.Resource() }

func (s spooledTarget) Traits() sealed.Traits { return s.blob.Traits() }

// Read implements Target, as Blob does, into a file if the content is long or its length is not announced.
func (s spooledTarget) Read(ctx context.Context) (*sealed.Version[Content], error) {
	if s.dir == "" {
		return nil, errNoDir
	}
	client, limit := s.blob.Client.BlobClient(), cmp.Or(s.blob.MaxSize, DefaultMaxSize)
	resp, err := anyblob.Get(ctx, client, blob.HTTPRange{}, optimistic.Conditions{})
	if err != nil {
		return anyblob.Absent[Content](err)
	}
	defer resp.Body.Close()
	var value Content
	var print fingerprint
	if n, known := anyblob.Announced(resp); known && n <= spoolAbove {
		value.Data, err = anyblob.ReadBody(ctx, client, resp, limit)
		print = printOf(value.Data)
	} else {
		value.Path, err = s.spool(func(to io.Writer) error {
			var h maphash.Hash
			h.SetSeed(printSeed)
			n, err := anyblob.CopyBody(ctx, client, resp, limit, io.MultiWriter(to, &h))
			print = fingerprint{true, int(n), h.Sum64()}
			return err
		})
	}
	if err != nil {
		return nil, tooLarge(err, limit)
	}
	state, carry, err := s.blob.read(ctx, resp)
	if err != nil {
		return nil, err
	}
	carry.print = print
	return sealed.Carry(&sealed.Version[Content]{State: state, Value: value}, carry), nil
}

// spool makes a file of what fill writes. It leaves no file after an error.
func (s spooledTarget) spool(fill func(io.Writer) error) (path string, err error) {
	file, err := os.CreateTemp(s.dir, "content-")
	if err != nil {
		return "", err
	}
	err = fill(file)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return "", err
	}
	return file.Name(), nil
}

// Look implements Target: one Get Blob Properties.
func (s spooledTarget) Look(ctx context.Context) (protocol.State, error) { return s.blob.Look(ctx) }

// Prepare implements Target: one Put Blob, whose body is read from the file.
func (s spooledTarget) Prepare(base *sealed.Version[Content], value Content, lineage protocol.Lineage, c sealed.Conditions) (protocol.Prepared, error) {
	if value.Path != "" && value.Data != nil {
		return protocol.Prepared{}, errors.New("Content has both Data and Path: only one of them can be the content")
	}
	if err := s.Writable(base); err != nil {
		return protocol.Prepared{}, err
	}
	carry, _ := sealed.Carried(base).(blobCarry)
	size, err := value.size()
	if err != nil {
		return protocol.Prepared{}, err
	}
	if base.Exists && s.blob.keepsHeaders(carry) && !lineage.Begins(base.Lineage) && int64(carry.print.size) == size {
		switch print, err := value.print(); {
		case err != nil:
			return protocol.Prepared{}, err
		case print == carry.print:
			return protocol.Prepared{}, nil
		}
	}
	return s.blob.put(base.State, carry, lineage, c, size, value.bodies(size))
}

// Writable returns an *optimistic.TypeError for an append or page blob, as that of a Blob.
func (s spooledTarget) Writable(base *sealed.Version[Content]) error {
	return writable(sealed.Carried(base))
}

// Remove implements Target: one Delete Blob.
func (s spooledTarget) Remove(base protocol.State, c sealed.Conditions) (protocol.Write, error) {
	return s.blob.Remove(base, c)
}

func (v Content) size() (int64, error) {
	if v.Path == "" {
		return int64(len(v.Data)), nil
	}
	info, err := os.Stat(v.Path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (v Content) print() (fingerprint, error) {
	if v.Path == "" {
		return printOf(v.Data), nil
	}
	file, err := os.Open(v.Path)
	if err != nil {
		return fingerprint{}, err
	}
	defer file.Close()
	var h maphash.Hash
	h.SetSeed(printSeed)
	n, err := io.Copy(&h, file)
	return fingerprint{true, int(n), h.Sum64()}, err
}

// bodies returns a body for each try of a write.
func (v Content) bodies(size int64) func() (io.ReadSeekCloser, error) {
	if v.Path == "" {
		return inMemory(v.Data)
	}
	return func() (io.ReadSeekCloser, error) {
		file, err := os.Open(v.Path)
		if err != nil {
			return nil, err
		}
		info, err := file.Stat()
		if err == nil && info.Size() != size {
			err = fmt.Errorf("%s had %d bytes when the write began, and has %d now: it must stay as it is", v.Path, size, info.Size())
		}
		if err != nil {
			_ = file.Close()
			return nil, err
		}
		return file, nil
	}
}
