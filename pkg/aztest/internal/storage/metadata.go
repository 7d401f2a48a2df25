package storage

import (
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"strings"
)

const metadataPrefix = "X-Ms-Meta-"

// MetadataOf reads a request's metadata. The service limits names to identifiers and all of it to 8 KB.
func MetadataOf(r *Request) (map[string]string, *Answer) {
	metadata := map[string]string{}
	size := 0
	for name, values := range r.Header {
		key, isMetadata := strings.CutPrefix(name, metadataPrefix)
		if !isMetadata {
			continue
		}
		key = strings.ToLower(key)
		if key == "" {
			return nil, Fail(http.StatusBadRequest, "EmptyMetadataKey", "The key for one of the metadata key-value pairs is empty.")
		}
		if !Identifier(key) {
			return nil, Fail(http.StatusBadRequest, "InvalidMetadata", "The metadata specified is invalid. It has characters that are not permitted.")
		}
		metadata[key] = values[0]
		size += len(key) + len(values[0])
	}
	if size > 8<<10 {
		return nil, Fail(http.StatusBadRequest, "MetadataTooLarge", "The metadata specified exceeds the maximum permissible limit (8KB).")
	}
	return metadata, nil
}

// Identifier reports whether a text is a name that metadata and properties may have.
func Identifier(s string) bool {
	for i, c := range s {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// ListedMetadata are metadata in a list.
type ListedMetadata map[string]string

// MarshalXML writes a name as an element.
func (m ListedMetadata) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	if len(m) == 0 {
		return nil
	}
	if err := e.EncodeToken(start); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if err := e.EncodeElement(m[name], xml.StartElement{Name: xml.Name{Local: name}}); err != nil {
			return err
		}
	}
	return e.EncodeToken(start.End())
}
