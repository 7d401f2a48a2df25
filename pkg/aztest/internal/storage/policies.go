package storage

import (
	"bytes"
	"encoding/xml"
	"time"
)

// Policies are the stored access policies of a container, queue, share or table.
type Policies struct {
	XMLName xml.Name `xml:"SignedIdentifiers"`
	Items   []struct {
		ID     string  `xml:"Id"`
		Policy *Policy `xml:"AccessPolicy"`
	} `xml:"SignedIdentifier"`
}

// Policy is what a SAS that names a stored access policy takes from it.
type Policy struct {
	Start, Expiry, Permission string `xml:",omitempty"`
}

// ParsePolicies parses stored access policies.
func ParsePolicies(document []byte) (p Policies, err error) {
	err = xml.Unmarshal(bytes.TrimPrefix(document, []byte("\ufeff")), &p)
	return p, err
}

// policiesIn returns the access policies in a request as the service stores them: in a fixed order, with times in full. It takes at most
// five, each with an id of 1 to 64 characters.
func policiesIn(body []byte) ([]byte, *Answer) {
	if len(body) == 0 {
		return nil, nil
	}
	list, err := ParsePolicies(body)
	ok := err == nil && len(list.Items) <= 5
	for _, one := range list.Items {
		ok = ok && one.ID != "" && len(one.ID) <= 64
		if p := one.Policy; p != nil {
			p.Start, p.Expiry = inFull(p.Start), inFull(p.Expiry)
		}
	}
	if !ok {
		return nil, InvalidXML()
	}
	return XML(list).Body, nil
}

// ParseTime parses a time in the three forms of ISO 8601 that the service accepts.
func ParseTime(text string) (at time.Time, err error) {
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", time.DateOnly} {
		if at, err = time.Parse(form, text); err == nil {
			break
		}
	}
	return at.UTC(), err
}

// inFull writes a time out to the service's resolution.
func inFull(text string) string {
	at, err := ParseTime(text)
	if err != nil {
		return text
	}
	return at.Format(SnapshotTime)
}
