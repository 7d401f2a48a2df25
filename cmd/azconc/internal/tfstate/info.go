package tfstate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// MetadataKey is the name under which the holder of a lock is described in the metadata of the state's blob: the Info as JSON,
// in standard base64. It is that of the azurerm backend.
const MetadataKey = "terraformlockid"

// ErrNoInfo means that the metadata describe no holder.
var ErrNoInfo = errors.New("the metadata describe no holder")

// maxInfo is the longest description, in bytes, that a lock takes. A blob has room for 8 KiB of metadata, in base64.
const maxInfo = 4 << 10

// Info describes the holder of a lock, as clients send it and show it. All members are always present: a client waits for a
// lock only if it can decode all of the description and the ID is not empty.
type Info struct {
	ID        string // a GUID: the id of the lease too
	Operation string // such as OperationTypeApply
	Info      string // free text
	Who       string // user@host
	Version   string // of the client
	Created   string // RFC 3339, by the client's clock
	Path      string // of the state
}

var guid = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// parseInfo reads a description as LOCK and UNLOCK carry it.
func parseInfo(body []byte) (Info, error) {
	var i Info
	if err := json.Unmarshal(body, &i); err != nil {
		return Info{}, fmt.Errorf("the body is not the description of a lock: %w", err)
	}
	if !i.Named() {
		return Info{}, fmt.Errorf("the lock's ID %.64q is not a GUID, so it cannot be the id of a lease", i.ID)
	}
	return i, nil
}

// InfoIn reads the description in a blob's metadata, whose names are in lower case. The error is ErrNoInfo if there is none.
func InfoIn(metadata map[string]string) (Info, error) {
	text := metadata[MetadataKey]
	if text == "" {
		return Info{}, ErrNoInfo
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return Info{}, fmt.Errorf("the metadata %s are not base64", MetadataKey)
	}
	var i Info
	if err := json.Unmarshal(raw, &i); err != nil || i.ID == "" {
		return Info{}, fmt.Errorf("the metadata %s are not the description of a lock", MetadataKey)
	}
	return i, nil
}

// Named reports whether the ID can be the id of a lease. Anybody who may write metadata can have stored another one.
func (i Info) Named() bool { return guid.MatchString(i.ID) }

// At returns when the lock was created, by the client's clock; zero if that is not known.
func (i Info) At() time.Time {
	at, err := time.Parse(time.RFC3339Nano, i.Created)
	if err != nil {
		return time.Time{}
	}
	return at
}

// json returns the description as clients decode it: Created must be a time.
func (i Info) json() []byte {
	if i.At().IsZero() {
		i.Created = time.Time{}.Format(time.RFC3339)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(i) // of strings
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// text returns the description as metadata have it.
func (i Info) text() string {
	if len(i.json()) > maxInfo {
		i.Info = "" // the only member of any length
	}
	return base64.StdEncoding.EncodeToString(i.json())
}
