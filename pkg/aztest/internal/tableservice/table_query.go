package tableservice

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/azconc/azconc/pkg/aztest/internal/edm"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

func (k entityKey) compare(other entityKey) int {
	return cmp.Or(strings.Compare(k.partition, other.partition), strings.Compare(k.row, other.row))
}

// selectedOf reads $select; nil means all properties.
func selectedOf(r *storage.Request) []string {
	var names []string
	for name := range strings.SplitSeq(r.Query.Get("$select"), ",") {
		if name = strings.TrimSpace(name); name == "*" {
			return nil
		} else if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// queryEntities returns a page of the entities that satisfy the filter, ordered by their keys. The page ends after $top
// entities, at most 1000, and the headers then contain the start of the next one.
func (s *Service) queryEntities(r *storage.Request, t *tableState) *storage.Answer {
	matches, err := edm.ParseFilter(r.Query.Get("$filter"))
	if err != nil {
		return invalidInput("The filter cannot be read: " + err.Error() + ".")
	}
	top, bad := topOf(r)
	if bad != nil {
		return bad
	}
	from, bad := continuationOf(r)
	if bad != nil {
		return bad
	}
	level, selected := metadataOfRequest(r), selectedOf(r)
	page := []edm.Object{}
	a := storage.OK(http.StatusOK)
	for _, key := range slices.SortedFunc(maps.Keys(t.entities), entityKey.compare) {
		e := t.entities[key]
		if key.compare(from) < 0 || !matches(e.property) {
			continue
		}
		if len(page) == top {
			a.Set("x-ms-continuation-NextPartitionKey", encodeContinuation(key.partition))
			a.Set("x-ms-continuation-NextRowKey", encodeContinuation(key.row))
			break
		}
		page = append(page, e.object(t, level, "", selected))
	}
	return s.listAnswer(a, level, "$metadata#"+t.Name, page)
}

// A continuation is opaque. A client that uses it as a key fails here.
func encodeContinuation(key string) string {
	text := base64.StdEncoding.EncodeToString([]byte(key))
	return fmt.Sprintf("1!%d!%s", len(text), text)
}

func continuationOf(r *storage.Request) (entityKey, *storage.Answer) {
	var parts [2]string
	for i, name := range []string{"nextpartitionkey", "nextrowkey"} {
		value := r.Query.Get(name)
		if value == "" {
			continue
		}
		pieces := strings.SplitN(value, "!", 3)
		text, err := base64.StdEncoding.DecodeString(pieces[len(pieces)-1])
		if len(pieces) != 3 || pieces[0] != "1" || err != nil {
			return entityKey{}, invalidInput("The continuation is not one that the service has given out.")
		}
		parts[i] = string(text)
	}
	return entityKey{parts[0], parts[1]}, nil
}

// metadataOfRequest returns the requested metadata level: $format takes precedence over Accept.
func metadataOfRequest(r *storage.Request) edm.Level {
	format := r.Query.Get("$format")
	if format == "" {
		format = r.Header.Get("Accept")
	}
	for _, level := range []edm.Level{edm.NoMetadata, edm.FullMetadata} {
		if strings.Contains(strings.ToLower(format), "odata="+string(level)) {
			return level
		}
	}
	return edm.MinimalMetadata
}

func jsonAnswer(status int, level edm.Level, o edm.Object) *storage.Answer {
	a := storage.OK(status).Set("Content-Type", "application/json;odata="+string(level)+";streaming=true;charset=utf-8")
	a.Body, _ = o.MarshalJSON()
	return a
}

// list fills a with the response to a query.
func (s *Service) listAnswer(a *storage.Answer, level edm.Level, metadata string, page []edm.Object) *storage.Answer {
	var values bytes.Buffer
	values.WriteByte('[')
	for i, item := range page {
		if i > 0 {
			values.WriteByte(',')
		}
		text, _ := item.MarshalJSON()
		values.Write(text)
	}
	values.WriteByte(']')
	var o edm.Object
	if level != edm.NoMetadata {
		o.Add("odata.metadata", edm.Quote(s.Endpoint+"/"+metadata))
	}
	o.Add("value", values.Bytes())
	full := jsonAnswer(a.Status, level, o)
	a.Body = full.Body
	return a.Set("Content-Type", full.Header.Get("Content-Type"))
}
