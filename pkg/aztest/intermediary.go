package aztest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// page is an intermediary's answer to a request that it does not pass on, or whose answer it does not wait for.
func page(hr *http.Request, status int) *http.Response {
	text := fmt.Sprintf("<!DOCTYPE html>\n<html><head><title>%d %s</title></head><body><h1>Sign in to use this network</h1></body></html>\n",
		status, http.StatusText(status))
	header := http.Header{"Content-Type": {"text/html; charset=utf-8"}, "Content-Length": {strconv.Itoa(len(text))}, "Server": {"intermediary"}}
	body := io.Reader(strings.NewReader(text))
	if hr.Method == http.MethodHead {
		body = http.NoBody
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(body), ContentLength: int64(len(text)), Request: hr,
	}
}

// rechunk takes the length from an answer, and the headers in drop.
func rechunk(response *http.Response, drop []string) *http.Response {
	response.Header.Del("Content-Length")
	response.ContentLength = -1
	for _, name := range drop {
		response.Header.Del(name)
	}
	return response
}

// truncate ends an answer's body half way, without an error.
func truncate(response *http.Response) (*http.Response, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body[:len(body)/2]))
	return response, nil
}
