package blobservice

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"net/http"
	"strconv"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// getBlob returns the content, or a range of it.
func getBlob(r *storage.Request, b *blobState) *storage.Answer {
	if b.tier == archive {
		return archived()
	}
	a := describeBlob(storage.OK(http.StatusOK), b, r.Header.Get("X-Ms-Version"), false)
	first, last, whole, bad := storage.Span(storage.RangeOf(r), b.length())
	if bad != nil {
		return bad
	}
	if a.Body, bad = b.read(first, last); bad != nil {
		return bad
	}
	if whole {
		return a
	}
	a.Status = http.StatusPartialContent
	a.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, b.length()))
	// Content-MD5 is the sum of the body; the sum of the whole blob has a header of its own.
	a.Set("x-ms-blob-content-md5", a.Header.Get("Content-Md5"))
	a.Header.Del("Content-Md5")
	return rangeSums(r, a)
}

// length is the size of the content.
func (b *blobState) length() int64 {
	if b.kind == "PageBlob" {
		return b.Pages.Size
	}
	return int64(len(b.content))
}

// read returns a range of the content, both ends included. The caller must not write to it.
func (b *blobState) read(first, last int64) ([]byte, *storage.Answer) {
	switch {
	case b.kind != "PageBlob":
		return b.content[first : last+1], nil
	case last-first >= storage.MaxRead:
		return nil, storage.NotImplemented()
	}
	return b.Pages.Read(first, last), nil
}

// crcTable is that of the service's polynomial, CRC-64/NVME.
var crcTable = crc64.MakeTable(0x9A6C9329AC4BC9B5)

func contentMD5(data []byte) string {
	sum := md5.Sum(data)
	return base64.StdEncoding.EncodeToString(sum[:])
}

func contentCRC64(data []byte) string {
	return base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(nil, crc64.Checksum(data, crcTable)))
}

// checkBody refuses a body that does not match the sum that was sent with it. In a Put Blob of a block blob the sum to
// store, x-ms-blob-content-md5, is checked too, and takes precedence.
func checkBody(r *storage.Request) *storage.Answer {
	name, sum := "Content-MD5", r.Header.Get("Content-Md5")
	if kept := r.Header.Get("X-Ms-Blob-Content-Md5"); kept != "" && r.Query.Get("comp") == "" && r.Header.Get("X-Ms-Blob-Type") == "BlockBlob" &&
		r.Header.Get("X-Ms-Copy-Source") == "" {
		name, sum = "x-ms-blob-content-md5", kept
	}
	return checkSums(r.Body, name, sum, "x-ms-content-crc64", r.Header.Get("X-Ms-Content-Crc64"))
}

func checkSums(body []byte, md5Header, md5Sum, crcHeader, crcSum string) *storage.Answer {
	if md5Sum != "" && crcSum != "" {
		return storage.Fail(http.StatusBadRequest, "BothCrc64AndMd5HeaderPresent", "Both "+crcHeader+" header and "+md5Header+" header are present.")
	}
	if md5Sum != "" {
		if raw, err := base64.StdEncoding.DecodeString(md5Sum); err != nil || len(raw) != md5.Size {
			return storage.Fail(http.StatusBadRequest, "InvalidMd5", "The MD5 value specified in "+md5Header+" is invalid. The MD5 value must be 128 bits and base64-encoded.")
		}
		if md5Sum != contentMD5(body) {
			return storage.Fail(http.StatusBadRequest, "Md5Mismatch", "The MD5 value specified in the request did not match with the MD5 value calculated by the server.")
		}
	}
	if crcSum != "" {
		if raw, err := base64.StdEncoding.DecodeString(crcSum); err != nil || len(raw) != crc64.Size {
			return storage.InvalidHeader(crcHeader, crcSum)
		}
		if crcSum != contentCRC64(body) {
			return storage.Fail(http.StatusBadRequest, "Crc64Mismatch", "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server.")
		}
	}
	return nil
}

// rangeSums adds the sum of a range that a Get Blob asks for. The service does so for up to 4 MiB.
func rangeSums(r *storage.Request, a *storage.Answer) *storage.Answer {
	wantMD5, _ := strconv.ParseBool(r.Header.Get("X-Ms-Range-Get-Content-Md5"))
	wantCRC, _ := strconv.ParseBool(r.Header.Get("X-Ms-Range-Get-Content-Crc64"))
	switch {
	case !wantMD5 && !wantCRC:
		return a
	case wantMD5 && wantCRC:
		return storage.InvalidHeader("x-ms-range-get-content-crc64", "true")
	case len(a.Body) > 4<<20:
		return storage.Fail(http.StatusBadRequest, "OutOfRangeInput", "A sum is given for ranges of up to 4 MiB.")
	case wantMD5:
		return a.Set("Content-MD5", contentMD5(a.Body))
	default:
		return a.Set("x-ms-content-crc64", contentCRC64(a.Body))
	}
}
