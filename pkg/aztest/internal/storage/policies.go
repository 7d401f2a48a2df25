package storage

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"net/http"
	"time"
)

// policiesIn parses the stored access policies in a request and returns them as the service stores them: in a fixed
// order, with times in full. It takes at most five, each with an id of 1 to 64 characters.
func policiesIn(body []byte) ([]byte, *Answer) {
	if len(body) == 0 {
		return nil, nil
	}
	var list struct {
		XMLName xml.Name `xml:"SignedIdentifiers"`
		Items   []struct {
			ID     string                                      `xml:"Id"`
			Policy *struct{ Start, Expiry, Permission string } `xml:"AccessPolicy"`
		} `xml:"SignedIdentifier"`
	}
	invalid := func() ([]byte, *Answer) {
		return nil, Fail(http.StatusBadRequest, "InvalidXmlDocument", "XML specified is not syntactically valid.")
	}
	if err := xml.Unmarshal(bytes.TrimPrefix(body, []byte("\ufeff")), &list); err != nil || len(list.Items) > 5 {
		return invalid()
	}
	var b bytes.Buffer
	b.WriteString("\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers>")
	for _, one := range list.Items {
		if one.ID == "" || len(one.ID) > 64 {
			return invalid()
		}
		fmt.Fprintf(&b, "<SignedIdentifier><Id>%s</Id>", Escaped(one.ID))
		if p := one.Policy; p != nil {
			b.WriteString("<AccessPolicy>")
			for _, field := range []struct{ name, value string }{{"Start", inFull(p.Start)}, {"Expiry", inFull(p.Expiry)}, {"Permission", p.Permission}} {
				if field.value != "" {
					fmt.Fprintf(&b, "<%s>%s</%s>", field.name, Escaped(field.value), field.name)
				}
			}
			b.WriteString("</AccessPolicy>")
		}
		b.WriteString("</SignedIdentifier>")
	}
	b.WriteString("</SignedIdentifiers>")
	return b.Bytes(), nil
}

// inFull writes a time out to the service's resolution.
func inFull(text string) string {
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04Z", time.DateOnly} {
		if at, err := time.Parse(form, text); err == nil {
			return at.UTC().Format(SnapshotTime)
		}
	}
	return text
}
