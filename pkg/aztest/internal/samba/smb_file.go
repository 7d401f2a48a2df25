package samba

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Access is the access that a file is opened for.
type Access uint32

// The accesses that share modes control, and two that they do not (MS-SMB2 2.2.13.1.1).
const (
	AccessRead            Access = 0x00000001
	AccessWrite           Access = 0x00000002
	AccessDelete          Access = 0x00010000
	AccessAttributes      Access = 0x00000080
	AccessWriteAttributes Access = 0x00000100
)

// Sharing is the access that other opens may have meanwhile.
type Sharing uint32

// Its flags (MS-SMB2 2.2.13). Zero is the share mode None.
const (
	ShareRead   Sharing = 1
	ShareWrite  Sharing = 2
	ShareDelete Sharing = 4
	ShareNone   Sharing = 0
	ShareAll            = ShareRead | ShareWrite | ShareDelete
)

// Disposition says what an open does if the file exists, and if it does not.
type Disposition uint32

// The dispositions in use.
const (
	OpenExisting Disposition = 1 // the default: the file must exist
	CreateNew    Disposition = 2 // it must not
	OpenOrCreate Disposition = 3
	Overwrite    Disposition = 5 // or create
)

// Options of an open.
const (
	OptionDirectory     uint32 = 0x01
	OptionNotDirectory  uint32 = 0x40
	OptionDeleteOnClose uint32 = 0x1000
)

// Open defines how a file is opened.
type Open struct {
	Access      Access
	Share       Sharing
	Disposition Disposition // defaults to OpenExisting
	Options     uint32
}

// File is an open file, with its properties at the time when it was opened or closed.
type File struct {
	Size     int64
	Changed  time.Time
	ReadOnly bool

	c  *Client
	id [16]byte
}

const (
	attributeReadOnly = 0x01
	attributeNormal   = 0x80
	impersonation     = 2
)

// maxIO is the size of one read or write, for a single credit.
const maxIO = 64 << 10

// Create opens a file of the share, whose path has slashes or backslashes. The error is a Status if smbd refuses.
func (c *Client) Create(path string, o Open) (*File, error) {
	name := utf16le(strings.ReplaceAll(strings.Trim(path, `/\`), "/", `\`))
	disposition := o.Disposition
	if disposition == 0 {
		disposition = OpenExisting
	}
	request := body(57).u8(0).u8(0).u32(impersonation).u64(0).u64(0).u32(uint32(o.Access)).u32(0).u32(uint32(o.Share)).
		u32(uint32(disposition)).u32(o.Options).u16(headerSize + 56).u16(uint16(len(name))).u32(0).u32(0).bytes(name).u8(0)
	answer, err := c.call(cmdCreate, request)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	f := &File{c: c, Size: int64(u64At(answer, 48)), Changed: filetime(u64At(answer, 32)), ReadOnly: u32At(answer, 56)&attributeReadOnly != 0}
	copy(f.id[:], answer.at(64, 16))
	return f, nil
}

// filetime counts tenths of microseconds since 1601.
func filetime(t uint64) time.Time {
	const epoch = 116444736000000000
	return time.Unix(0, int64(t-epoch)*100).UTC()
}

// Close closes the file, and updates its properties. The last close carries out a pending deletion.
func (f *File) Close() error {
	const attributes = 1
	answer, err := f.c.call(cmdClose, body(24).u16(attributes).u32(0).bytes(f.id[:]))
	if err == nil && u16At(answer, 2)&attributes != 0 {
		f.Size, f.Changed = int64(u64At(answer, 48)), filetime(u64At(answer, 32))
	}
	return err
}

// ReadAt reads up to n bytes, fewer at the end of the file.
func (f *File) ReadAt(offset int64, n int) ([]byte, error) {
	var out []byte
	for len(out) < n {
		want := min(n-len(out), maxIO)
		request := body(49).u8(0).u8(0).u32(uint32(want)).u64(uint64(offset) + uint64(len(out))).bytes(f.id[:]).
			u32(0).u32(0).u32(0).u32(0).u8(0)
		answer, err := f.c.call(cmdRead, request)
		if err == StatusEndOfFile { //nolint:errorlint // call wraps nothing
			return out, nil
		}
		if err != nil {
			return out, err
		}
		data, err := answer.buffer(uint16(answer.at(2, 1)[0]), int(u32At(answer, 4)))
		if err != nil || len(data) == 0 {
			return out, err
		}
		out = append(out, data...)
	}
	return out, nil
}

// WriteAt writes all of data, and extends the file if necessary.
func (f *File) WriteAt(offset int64, data []byte) error {
	for len(data) > 0 {
		part := data[:min(len(data), maxIO)]
		request := body(49).u16(headerSize + 48).u32(uint32(len(part))).u64(uint64(offset)).bytes(f.id[:]).
			u32(0).u32(0).u16(0).u16(0).u32(0).bytes(part)
		if _, err := f.c.call(cmdWrite, request); err != nil {
			return err
		}
		data, offset = data[len(part):], offset+int64(len(part))
	}
	return nil
}

// Lock locks a range of bytes for this open, or fails at once.
func (f *File) Lock(offset, n int64) error { return f.lock(offset, n, 0x02|0x10) }

// Unlock unlocks a range, which must be one that was locked.
func (f *File) Unlock(offset, n int64) error { return f.lock(offset, n, 0x04) }

func (f *File) lock(offset, n int64, flags uint32) error {
	_, err := f.c.call(cmdLock, body(48).u16(1).u32(0).bytes(f.id[:]).u64(uint64(offset)).u64(uint64(n)).u32(flags).u32(0))
	return err
}

// The information classes that can be set (MS-FSCC 2.4).
const (
	classBasic       = 4
	classDisposition = 13
	classEndOfFile   = 20
)

// MarkDeleted sets or clears the mark that deletes the file when the last open is closed. It needs AccessDelete.
func (f *File) MarkDeleted(marked bool) error {
	value := byte(0)
	if marked {
		value = 1
	}
	return f.set(classDisposition, []byte{value})
}

// Resize sets the file's length. It needs AccessWrite.
func (f *File) Resize(n int64) error {
	return f.set(classEndOfFile, binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

// SetReadOnly sets or clears the attribute. It needs AccessWriteAttributes.
func (f *File) SetReadOnly(on bool) error {
	attributes := uint32(attributeNormal)
	if on {
		attributes = attributeReadOnly
	}
	return f.set(classBasic, (&encoder{}).bytes(make([]byte, 32)).u32(attributes).u32(0).Bytes())
}

func (f *File) set(class uint8, value []byte) error {
	const file = 1
	_, err := f.c.call(cmdSetInfo, body(33).u8(file).u8(class).u32(uint32(len(value))).u16(headerSize+32).u16(0).u32(0).bytes(f.id[:]).bytes(value))
	return err
}

// Entry is an entry of a directory.
type Entry struct {
	Name      string
	Size      int64
	Directory bool
}

// List lists a directory, "" being the root. Files whose deletion is pending are included, as on Windows.
func (c *Client) List(path string) (out []Entry, err error) {
	dir, err := c.Create(path, Open{Access: AccessRead | AccessAttributes, Share: ShareAll, Options: OptionDirectory})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	pattern := utf16le("*")
	for {
		const directoryInformation, limit = 1, 64 << 10
		request := body(33).u8(directoryInformation).u8(0).u32(0).bytes(dir.id[:]).u16(headerSize + 32).u16(uint16(len(pattern))).u32(limit).bytes(pattern)
		answer, err := c.call(cmdQueryDirectory, request)
		if err == StatusNoMoreFiles { //nolint:errorlint // call wraps nothing
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := answer.buffer(u16At(answer, 2), int(u32At(answer, 4)))
		if err != nil {
			return nil, err
		}
		out = appendEntries(out, data)
	}
}

func appendEntries(out []Entry, data reply) []Entry {
	for {
		const attributeDirectory = 0x10
		name := fromUTF16(data.at(64, min(int(u32At(data, 60)), len(data))))
		if name != "." && name != ".." {
			out = append(out, Entry{Name: name, Size: int64(u64At(data, 40)), Directory: u32At(data, 56)&attributeDirectory != 0})
		}
		next := int(u32At(data, 0))
		if next == 0 || next >= len(data) {
			return out
		}
		data = data[next:]
	}
}
