package azerr

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// FuzzAnswer makes an error of any answer, as the SDK does, and asks everything of it.
func FuzzAnswer(f *testing.F) {
	f.Add(412, "ConditionNotMet", "application/xml", []byte(`<?xml version="1.0"?><Error><Code>ConditionNotMet</Code><Message>No.</Message></Error>`))
	f.Add(409, "", "application/json", []byte(`{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US","value":"No."}}}`))
	f.Add(202, "", "multipart/mixed; boundary=b", []byte("--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 412 Precondition Failed\r\nContent-Type: application/json\r\n\r\n"+
		`{"odata.error":{"code":"UpdateConditionNotSatisfied","message":{"lang":"en-US","value":"3:No."}}}`+"\r\n--b--\r\n"))
	f.Add(503, "ServerBusy", "text/html", []byte("<html>\x1b[2J</html>"))
	f.Fuzz(func(t *testing.T, status int, code, contentType string, body []byte) {
		request, err := http.NewRequest(http.MethodPut, "https://acct.blob.core.windows.net/c/b?sig="+secret, nil)
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{"Content-Type": {contentType}}
		if code != "" {
			h["X-Ms-Error-Code"] = []string{code}
		}
		e := runtime.NewResponseError(&http.Response{StatusCode: status, Header: h, Request: request, Body: io.NopCloser(bytes.NewReader(body))})
		o := Classify(e)
		if o.Index < -1 || o != Classify(e) {
			t.Errorf("classified as %+v, then as %+v", o, Classify(e))
		}
		if index, inner, ok := Transaction(e); ok && (e.(*azcore.ResponseError).StatusCode != http.StatusAccepted || index != o.Index || inner != o.Code) {
			t.Errorf("a transaction that failed at %d with %q is classified as %+v", index, inner, o)
		}
		summary := Summary(e)
		if strings.Contains(summary, "T0PSECRET") || strings.ContainsFunc(summary, unicode.IsControl) {
			t.Errorf("summary %q", summary)
		}
	})
}
