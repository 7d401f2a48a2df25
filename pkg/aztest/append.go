package aztest

import (
	"net/http"
	"strconv"
)

func invalidBlobType() *answer {
	return fail(http.StatusConflict, "InvalidBlobType", "The blob type is invalid for this operation.")
}

// appendBlock adds to an append blob, under conditions on its length.
func (s *Service) appendBlock(r *request, b *blobState) *answer {
	switch {
	case b.kind != "AppendBlob":
		return invalidBlobType()
	case b.sealed:
		return fail(http.StatusConflict, "BlobIsSealed", "The specified blob is sealed and its contents can't be modified.")
	case b.blockCount >= 50000:
		return fail(http.StatusConflict, "BlockCountExceedsLimit", "The committed block count cannot exceed the maximum limit of 50,000 blocks.")
	}
	length := int64(len(b.content))
	if at, given := number(r, "X-Ms-Blob-Condition-Appendpos"); given && at != length {
		return appendPositionNotMet()
	}
	if limit, given := number(r, "X-Ms-Blob-Condition-Maxsize"); given && length+int64(len(r.body)) > limit {
		return fail(http.StatusPreconditionFailed, "MaxBlobSizeConditionNotMet", "The max blob size condition specified was not met.")
	}
	// Whoever reads the old version holds on to a slice of the old length, so the room behind it may be written. Only
	// this blob has the right to it: copies and snapshots never grow in place.
	b.content = append(b.content, r.body...)
	b.blockCount++
	s.touch(b)
	return ok(http.StatusCreated).version(b.etag, b.lastModified).checked(r).
		set("x-ms-blob-append-offset", strconv.FormatInt(length, 10)).
		set("x-ms-blob-committed-block-count", strconv.Itoa(b.blockCount))
}

func appendPositionNotMet() *answer {
	return fail(http.StatusPreconditionFailed, "AppendPositionConditionNotMet", "The append position condition specified was not met.")
}

// sealAppend makes an append blob read-only. Sealing twice is no change.
func (s *Service) sealAppend(r *request, b *blobState) *answer {
	if b.kind != "AppendBlob" {
		return invalidBlobType()
	}
	if at, given := number(r, "X-Ms-Blob-Condition-Appendpos"); given && at != int64(len(b.content)) {
		return appendPositionNotMet()
	}
	if !b.sealed {
		b.sealed = true
		s.touch(b)
	}
	return ok(http.StatusOK).version(b.etag, b.lastModified).set("x-ms-blob-sealed", "true")
}

func number(r *request, header string) (int64, bool) {
	n, err := strconv.ParseInt(r.header.Get(header), 10, 64)
	return n, err == nil
}
