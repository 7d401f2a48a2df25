package aztest

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"net/http"
	"strconv"
	"strings"
)

// rangeOf returns the range that a request names; x-ms-range takes precedence over Range.
func rangeOf(r *request) string {
	if header := r.header.Get("X-Ms-Range"); header != "" {
		return header
	}
	return r.header.Get("Range")
}

// parseRange parses "bytes=first-last" or "bytes=first-", whose last is -1.
func parseRange(header string) (first, last int64, err error) {
	from, to, ok := strings.Cut(strings.TrimPrefix(header, "bytes="), "-")
	if first, err = strconv.ParseInt(from, 10, 64); err != nil || !ok || first < 0 {
		return 0, 0, fmt.Errorf("malformed range %q", header)
	}
	if to == "" {
		return first, -1, nil
	}
	if last, err = strconv.ParseInt(to, 10, 64); err != nil || last < first {
		return 0, 0, fmt.Errorf("malformed range %q", header)
	}
	return first, last, nil
}

func invalidRange(size int64) *answer {
	return fail(http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The range specified is invalid for the current size of the resource.").
		set("Content-Range", fmt.Sprintf("bytes */%d", size))
}

// getBlob returns the content, or a range of it.
func getBlob(r *request, b *blobState) *answer {
	if b.tier == archive {
		return fail(http.StatusConflict, "BlobArchived", "This operation is not permitted on an archived blob.")
	}
	a := ok(http.StatusOK).properties(b, r.header.Get("X-Ms-Version"), false)
	first, last, err := parseRange(rangeOf(r))
	if err != nil { // there is none, or it cannot be read: then it is ignored
		a.body = b.read(0, b.length()-1)
		return a
	}
	if first >= b.length() {
		return invalidRange(b.length())
	}
	if last < 0 || last >= b.length() {
		last = b.length() - 1
	}
	a.status = http.StatusPartialContent
	a.set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, b.length()))
	// Content-MD5 is the sum of the body; the sum of the whole blob has a header of its own.
	a.set("x-ms-blob-content-md5", a.header.Get("Content-Md5"))
	a.header.Del("Content-Md5")
	a.body = b.read(first, last)
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
func (b *blobState) read(first, last int64) []byte {
	if b.kind == "PageBlob" {
		return b.Pages.Read(first, last)
	}
	return b.content[first : last+1]
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
func checkBody(r *request) *answer {
	name, sum := "Content-MD5", r.header.Get("Content-Md5")
	if kept := r.header.Get("X-Ms-Blob-Content-Md5"); kept != "" && r.query.Get("comp") == "" && r.header.Get("X-Ms-Blob-Type") == "BlockBlob" &&
		r.header.Get("X-Ms-Copy-Source") == "" {
		name, sum = "x-ms-blob-content-md5", kept
	}
	return checkSums(r.body, name, sum, "x-ms-content-crc64", r.header.Get("X-Ms-Content-Crc64"))
}

func checkSums(body []byte, md5Header, md5Sum, crcHeader, crcSum string) *answer {
	if md5Sum != "" && crcSum != "" {
		return fail(http.StatusBadRequest, "BothCrc64AndMd5HeaderPresent", "Both "+crcHeader+" header and "+md5Header+" header are present.")
	}
	if md5Sum != "" {
		if raw, err := base64.StdEncoding.DecodeString(md5Sum); err != nil || len(raw) != md5.Size {
			return fail(http.StatusBadRequest, "InvalidMd5", "The MD5 value specified in "+md5Header+" is invalid. The MD5 value must be 128 bits and base64-encoded.")
		}
		if md5Sum != contentMD5(body) {
			return fail(http.StatusBadRequest, "Md5Mismatch", "The MD5 value specified in the request did not match with the MD5 value calculated by the server.")
		}
	}
	if crcSum != "" {
		if raw, err := base64.StdEncoding.DecodeString(crcSum); err != nil || len(raw) != crc64.Size {
			return invalidHeader(crcHeader, crcSum)
		}
		if crcSum != contentCRC64(body) {
			return fail(http.StatusBadRequest, "Crc64Mismatch", "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server.")
		}
	}
	return nil
}

// checked returns the sums that checkBody verified. The service also computes sums without being asked; here that would
// be wasted work.
func (a *answer) checked(r *request) *answer {
	return a.set("Content-MD5", r.header.Get("Content-Md5")).set("x-ms-content-crc64", r.header.Get("X-Ms-Content-Crc64"))
}

// rangeSums adds the sum of a range that a Get Blob asks for. The service does so for up to 4 MiB.
func rangeSums(r *request, a *answer) *answer {
	wantMD5, _ := strconv.ParseBool(r.header.Get("X-Ms-Range-Get-Content-Md5"))
	wantCRC, _ := strconv.ParseBool(r.header.Get("X-Ms-Range-Get-Content-Crc64"))
	switch {
	case !wantMD5 && !wantCRC:
		return a
	case wantMD5 && wantCRC:
		return invalidHeader("x-ms-range-get-content-crc64", "true")
	case len(a.body) > 4<<20:
		return fail(http.StatusBadRequest, "OutOfRangeInput", "A sum is given for ranges of up to 4 MiB.")
	case wantMD5:
		return a.set("Content-MD5", contentMD5(a.body))
	default:
		return a.set("x-ms-content-crc64", contentCRC64(a.body))
	}
}
