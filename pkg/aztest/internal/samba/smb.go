package samba

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/Azure/go-ntlmssp"
)

// requestTimeout bounds each request to smbd. No request waits for another client: locks are requested without waiting.
const requestTimeout = 30 * time.Second

// The commands of SMB 2 (MS-SMB2 2.2.1.2).
const (
	cmdNegotiate uint16 = iota
	cmdSessionSetup
	cmdLogoff
	cmdTreeConnect
	cmdTreeDisconnect
	cmdCreate
	cmdClose
	cmdFlush
	cmdRead
	cmdWrite
	cmdLock
	cmdIoctl
	cmdCancel
	cmdEcho
	cmdQueryDirectory
	cmdChangeNotify
	cmdQueryInfo
	cmdSetInfo
)

const headerSize = 64

// Client is an SMB 2.1 connection with the share open, without signatures, encryption, oplocks and leases, so that
// changes by other clients are visible at once. It exists because Go libraries do not let the caller choose the share
// mode of an open. It has one request in flight at a time, each with a timeout of 30 s, and is safe for concurrent use.
type Client struct {
	local string // the local address, by which smbd identifies the connection

	mu      sync.Mutex // guards all below
	conn    net.Conn
	message uint64
	session uint64
	tree    uint32
}

// Dial connects to the share as the server's user; ctx bounds only that. Its GUID is new, because smbd serves clients
// with equal GUIDs in one process, where one of them cannot be closed without the other.
func (s *Server) Dial(ctx context.Context) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp4", s.Address)
	if err != nil {
		return nil, err
	}
	c := &Client{conn: conn, local: conn.LocalAddr().String()}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := c.connect(s); err != nil {
		return nil, fmt.Errorf("connect to smbd: %w", errors.Join(err, conn.Close()))
	}
	return c, nil
}

// Close ends the connection, and with it every open and lock.
func (c *Client) Close() error { return c.conn.Close() }

// Echo checks that smbd still responds.
func (c *Client) Echo() error {
	_, err := c.call(cmdEcho, body(4).u16(0))
	return err
}

func (c *Client) connect(s *Server) error {
	guid := make([]byte, 16)
	_, _ = rand.Read(guid)
	const signing, dialect = 1, 0x0210
	negotiate := body(36).u16(1).u16(signing).u16(0).u32(0).bytes(guid).u64(0).u16(dialect)
	if _, err := c.call(cmdNegotiate, negotiate); err != nil {
		return err
	}
	hello, err := ntlmssp.NewNegotiateMessage("", "")
	if err != nil {
		return err
	}
	challenge, err := c.authenticate(hello)
	if !errors.Is(err, StatusMoreProcessing) {
		return fmt.Errorf("no challenge: %w", err)
	}
	proof, err := ntlmssp.NewAuthenticateMessage(challenge, s.User, s.Password, nil)
	if err != nil {
		return err
	}
	if _, err := c.authenticate(proof); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(s.Address)
	path := utf16le(`\\` + host + `\` + ShareName)
	_, err = c.call(cmdTreeConnect, body(9).u16(0).u16(headerSize+8).u16(uint16(len(path))).bytes(path))
	return err
}

// authenticate exchanges one NTLM message each way. The challenge has a status that is not a success.
func (c *Client) authenticate(message []byte) ([]byte, error) {
	const signing = 1
	setup := body(25).u8(0).u8(signing).u32(0).u32(0).u16(headerSize + 24).u16(uint16(len(message))).u64(0).bytes(message)
	answer, err := c.call(cmdSessionSetup, setup)
	if err != nil && !errors.Is(err, StatusMoreProcessing) {
		return nil, err
	}
	data, bad := answer.buffer(u16At(answer, 4), int(u16At(answer, 6)))
	return data, errors.Join(err, bad)
}

// call sends a request and returns the body of the response. A status other than success is returned as the error,
// possibly together with a body.
func (c *Client) call(command uint16, request *encoder) (reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return nil, err
	}
	id := c.message
	c.message++
	header := (&encoder{}).bytes([]byte{0xFE, 'S', 'M', 'B'}).u16(headerSize).u16(1).u32(0).u16(command).u16(64).u32(0).u32(0).
		u64(id).u32(0).u32(c.tree).u64(c.session).bytes(make([]byte, 16))
	frame := binary.BigEndian.AppendUint32(nil, uint32(header.Len()+request.Len()))
	if _, err := c.conn.Write(append(append(frame, header.Bytes()...), request.Bytes()...)); err != nil {
		return nil, err
	}
	for {
		answer, err := c.receive()
		if err != nil {
			_ = c.conn.Close() // the next data would be taken for another response
			return nil, err
		}
		status := Status(binary.LittleEndian.Uint32(answer[8:]))
		if binary.LittleEndian.Uint64(answer[24:]) != id || status == StatusPending {
			continue // an interim response: the final one follows
		}
		switch command {
		case cmdSessionSetup:
			c.session = binary.LittleEndian.Uint64(answer[40:])
		case cmdTreeConnect:
			c.tree = binary.LittleEndian.Uint32(answer[36:])
		}
		if status != 0 {
			return reply(answer[headerSize:]), status
		}
		return reply(answer[headerSize:]), nil
	}
}

func (c *Client) receive() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.conn, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:]) & 0xFFFFFF
	if n < headerSize {
		return nil, fmt.Errorf("an answer of %d bytes is none of SMB 2", n)
	}
	answer := make([]byte, n)
	if _, err := io.ReadFull(c.conn, answer); err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(answer, []byte{0xFE, 'S', 'M', 'B'}) {
		return nil, errors.New("the answer is not of SMB 2")
	}
	return answer, nil
}

// encoder builds a request, little endian.
type encoder struct{ bytes.Buffer }

// body begins a request with the size of its structure, which does not depend on what follows.
func body(size uint16) *encoder { return (&encoder{}).u16(size) }

func (e *encoder) bytes(b []byte) *encoder { e.Write(b); return e }
func (e *encoder) u8(v uint8) *encoder     { return e.bytes([]byte{v}) }
func (e *encoder) u16(v uint16) *encoder   { return e.bytes(binary.LittleEndian.AppendUint16(nil, v)) }
func (e *encoder) u32(v uint32) *encoder   { return e.bytes(binary.LittleEndian.AppendUint32(nil, v)) }
func (e *encoder) u64(v uint64) *encoder   { return e.bytes(binary.LittleEndian.AppendUint64(nil, v)) }

// reply is the body of a response. Reads past its end return zeros, so that a short response does not cause a panic.
type reply []byte

func (r reply) at(offset, n int) []byte {
	out := make([]byte, n)
	if offset < len(r) {
		copy(out, r[offset:])
	}
	return out
}

func u16At(r reply, offset int) uint16 { return binary.LittleEndian.Uint16(r.at(offset, 2)) }
func u32At(r reply, offset int) uint32 { return binary.LittleEndian.Uint32(r.at(offset, 4)) }
func u64At(r reply, offset int) uint64 { return binary.LittleEndian.Uint64(r.at(offset, 8)) }

// buffer returns the part of a response that begins at an offset from the header.
func (r reply) buffer(offset uint16, n int) ([]byte, error) {
	first := int(offset) - headerSize
	if n == 0 {
		return nil, nil
	}
	if first < 0 || n < 0 || first+n > len(r) {
		return nil, fmt.Errorf("the answer has %d bytes, and the data is said to be at %d+%d", len(r), first, n)
	}
	return r[first : first+n], nil
}

func utf16le(s string) []byte {
	var out []byte
	for _, u := range utf16.Encode([]rune(s)) {
		out = binary.LittleEndian.AppendUint16(out, u)
	}
	return out
}

func fromUTF16(b []byte) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}
