package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// StrictJSON reads a document whose every member must be known.
func StrictJSON(data []byte, what string, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return Usagef("the file is not %s: %s", what, OneLine(PlainJSON(err)))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Usagef("the file is not %s: it is more than one JSON value", what)
	}
	return nil
}
