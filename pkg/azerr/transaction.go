package azerr

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strconv"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// Transaction finds the operation that made an entity group transaction fail: its index from 0, and its code. The SDK
// reports such a failure as status 202 without a code; both are in the multipart body only, the index as a prefix of
// the message ("3:The update condition specified in the request was not satisfied.").
func Transaction(err error) (index int, code string, ok bool) {
	response, isAnswer := errors.AsType[*azcore.ResponseError](err)
	if !isAnswer {
		return -1, "", false
	}
	index, _, code, ok = transaction(response)
	return index, code, ok
}

var (
	partStatus = regexp.MustCompile(`(?m)^HTTP/1\.1 (\d{3}) `)
	partJSON   = regexp.MustCompile(`(?s)\{\s*"odata\.error".*\}`)
	indexed    = regexp.MustCompile(`^(\d+):`)
)

func transaction(response *azcore.ResponseError) (index, status int, code string, ok bool) {
	raw := response.RawResponse
	if response.ErrorCode != "" || response.StatusCode != http.StatusAccepted || raw == nil {
		return -1, 0, "", false
	}
	body, err := runtime.Payload(raw) // reads once, and leaves a copy for the next reader
	if err != nil {
		return -1, 0, "", false
	}
	status = http.StatusAccepted
	for _, m := range partStatus.FindAllSubmatch(body, -1) {
		if n, _ := strconv.Atoi(string(m[1])); n >= 400 {
			status = n
		}
	}
	var failure struct {
		Error struct {
			Code    string `json:"code"`
			Message struct {
				Value string `json:"value"`
			} `json:"message"`
		} `json:"odata.error"`
	}
	found := partJSON.Find(body)
	if found == nil || json.NewDecoder(bytes.NewReader(found)).Decode(&failure) != nil || failure.Error.Code == "" {
		return -1, 0, "", false
	}
	index = -1
	if m := indexed.FindStringSubmatch(failure.Error.Message.Value); m != nil {
		index, _ = strconv.Atoi(m[1])
	}
	return index, status, failure.Error.Code, true
}
