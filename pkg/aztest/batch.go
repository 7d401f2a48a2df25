package aztest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"

	"github.com/azconc/azconc/pkg/aztest/internal/blobservice"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// maxBatch is the number of requests in a Blob Batch.
const maxBatch = 256

// batch carries out a Blob Batch (REST: "Blob Batch"): deletions and changes of tier, each authorized by itself. One that
// fails does not keep the others from taking effect.
func (s *Service) batch(r *storage.Request) *storage.Answer {
	requests, ids, err := batchRequests(r)
	switch {
	case err != nil || len(requests) == 0:
		return storage.Fail(http.StatusBadRequest, "InvalidInput", "One of the request inputs is not valid.")
	case len(requests) > maxBatch:
		return storage.Fail(http.StatusBadRequest, "ExceedsMaxBatchRequestCount", "The batch operation exceeds maximum number of allowed subrequests.")
	}
	boundary := fmt.Sprintf("batchresponse_%08d-0000-4000-8000-%012d", s.requests, len(requests))
	var body bytes.Buffer
	for i, hr := range requests {
		a := s.batched(hr, r)
		fmt.Fprintf(&body, "--%s\r\nContent-Type: application/http\r\n", boundary)
		if ids[i] != "" {
			fmt.Fprintf(&body, "Content-ID: %s\r\n", ids[i])
		}
		fmt.Fprintf(&body, "\r\nHTTP/1.1 %d %s\r\n", a.Status, http.StatusText(a.Status))
		a.Stamped(fmt.Sprintf("aztest-%08d-%d", s.requests, i), hr.Header, s.date()).Set("x-ms-version", r.Header.Get("x-ms-version"))
		for _, name := range slices.Sorted(maps.Keys(a.Header)) {
			if strings.HasPrefix(name, "X-Ms-") {
				name = strings.ToLower(name) // the JavaScript SDK looks for x-ms-error-code as it is written here
			}
			fmt.Fprintf(&body, "%s: %s\r\n", name, a.Header.Get(name))
		}
		fmt.Fprintf(&body, "Content-Length: %d\r\n\r\n%s\r\n", len(a.Body), a.Body)
	}
	fmt.Fprintf(&body, "--%s--\r\n", boundary)
	a := storage.OK(http.StatusAccepted).Set("Content-Type", "multipart/mixed; boundary="+boundary)
	a.Body = body.Bytes()
	return a
}

// batched carries out one of a batch's requests.
func (s *Service) batched(hr *http.Request, batch *storage.Request) *storage.Answer {
	described := describe(hr)
	part, err := storage.ParseRequest(hr)
	switch {
	case err != nil, described.Op != "Delete Blob" && described.Op != "Set Blob Tier":
		return storage.Fail(http.StatusBadRequest, "InvalidInput", "A batch has requests to delete blobs or to set their tier.")
	case batch.Container != "" && part.Container != batch.Container:
		return storage.Fail(http.StatusBadRequest, "InvalidInput", "A batch of a container has requests to its own blobs.")
	}
	return s.answer(hr, part)
}

// batchRequests parses the requests in a batch, and the Content-ID of each.
func batchRequests(r *storage.Request) (requests []*http.Request, ids []string, err error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/mixed" {
		return nil, nil, errors.New("it is not multipart/mixed")
	}
	parts := multipart.NewReader(bytes.NewReader(r.Body), params["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return requests, ids, nil
		}
		if err != nil {
			return nil, nil, err
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return nil, nil, err
		}
		// The request has no Host, and a body of no length, which ReadRequest would refuse.
		hr, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(append(bytes.TrimRight(data, "\r\n"), "\r\n\r\n"...))))
		if err != nil {
			return nil, nil, err
		}
		hr.Body, hr.ContentLength = http.NoBody, 0
		hr.URL.Scheme, hr.URL.Host = "http", blobservice.Host
		requests, ids = append(requests, hr), append(ids, part.Header.Get("Content-ID"))
	}
}
