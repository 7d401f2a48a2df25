package azerr

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// Transaction returns the operation that made an entity group transaction fail: its index from 0, and its code. The SDK
// reports such a failure as status 202 without a code. Both are only in the multipart body, the index as a prefix of
// the message ("3:The update condition specified in the request was not satisfied."). The index is -1 if the message
// has no such prefix. ok is false for every other error, including a transaction that was refused as a whole: such a
// response has a status and a code of its own.
func Transaction(err error) (index int, code string, ok bool) {
	response, isAnswer := errors.AsType[*azcore.ResponseError](err)
	if !isAnswer {
		return -1, "", false
	}
	index, _, code, ok = transaction(response)
	return index, code, ok
}

var (
	partStatus = regexp.MustCompile(`(?m)^HTTP/1\.[01] ([45]\d\d)\b`)
	partError  = regexp.MustCompile(`\{\s*"(?:odata\.)?error"\s*:`)
	indexed    = regexp.MustCompile(`^(\d{1,3}):`)
)

// payload serializes the reading of bodies. runtime.Payload writes to the response even if it only returns the body
// that it kept, and several callers whose changes share one transaction may classify the same error.
var payload sync.Mutex

func transaction(response *azcore.ResponseError) (index, status int, code string, ok bool) {
	raw := response.RawResponse
	if response.StatusCode != http.StatusAccepted || raw == nil {
		return -1, 0, "", false
	}
	payload.Lock()
	body, err := runtime.Payload(raw) // leaves a copy for the next reader
	payload.Unlock()
	if err != nil {
		return -1, 0, "", false
	}
	index = -1
	if m := partStatus.FindSubmatch(body); m != nil {
		status, _ = strconv.Atoi(string(m[1]))
	}
	if at := partError.FindIndex(body); at != nil {
		type failure struct {
			Code    string `json:"code"`
			Message struct {
				Value string `json:"value"`
			} `json:"message"`
		}
		var part map[string]failure
		// A decoder rather than Unmarshal, because the boundary of the next part follows the object.
		if json.NewDecoder(bytes.NewReader(body[at[0]:])).Decode(&part) == nil {
			for _, f := range part {
				code = f.Code
				if m := indexed.FindStringSubmatch(f.Message.Value); m != nil {
					index, _ = strconv.Atoi(m[1])
				}
			}
		}
	}
	if status == 0 && code == "" {
		return -1, 0, "", false
	}
	return index, status, code, true
}
