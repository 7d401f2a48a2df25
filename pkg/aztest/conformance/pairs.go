package conformance

import (
	"context"
	"net/http"
	"strings"
)

// The headers of a combination, which is written as a list of words: same* holds for the current blob and other* does
// not; past and future are dates.
var words = map[string][2]string{
	"match-same": {"If-Match", "E"}, "match-other": {"If-Match", `"0x8D0000000000001"`}, "match-any": {"If-Match", "*"},
	"match-bare": {"If-Match", "bare E"}, "match-weak": {"If-Match", "W/E"}, "match-two": {"If-Match", `"0x8D0000000000001",E`},
	"none-same": {"If-None-Match", "E"}, "none-other": {"If-None-Match", `"0x8D0000000000001"`}, "none-two": {"If-None-Match", `"0x8D0000000000001",E`},
	"modified-past": {"If-Modified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"}, "modified-now": {"If-Modified-Since", "T"},
	"unmodified-past": {"If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"}, "unmodified-now": {"If-Unmodified-Since", "T"},
	"tags-true": {"x-ms-if-tags", `"state" = 'ready'`}, "tags-false": {"x-ms-if-tags", `"state" = 'nothing'`},
	"tags-nonsense": {"x-ms-if-tags", `"state" == ready`},
}

func (x target) combination(t T, list string) http.Header {
	t.Helper()
	p, err := x.any().GetProperties(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	etag := string(*p.ETag)
	h := http.Header{}
	for word := range strings.FieldsSeq(list) {
		value := words[word][1]
		switch value {
		case "bare E":
			value = strings.Trim(etag, `"`)
		case "T":
			value = p.LastModified.UTC().Format(http.TimeFormat)
		default:
			value = strings.Replace(value, "E", etag, 1)
		}
		h.Set(words[word][0], value)
	}
	return h
}

const multiple said = "400 MultipleConditionHeadersNotSupported"

// Pairs tests combinations of conditions: reads accept any, as If-Match && If-Unmodified-Since && (If-None-Match ||
// If-Modified-Since), writes only two pairs, in which the ETag decides. Index tags are evaluated in addition.
func Pairs(t T, h Harness) {
	c := h.Container(t)
	x := target{container: c, name: "pairs"}
	stops := func(other said) expect {
		return expect{emulator: other, why: "it looks at no tags when there is another condition"}
	}
	fresh := func(t T) {
		x.create(t, "")
		if _, err := x.any().SetTags(context.Background(), map[string]string{"state": "ready"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	fresh(t)
	for _, q := range []struct {
		list    string
		service said
		differ  expect
	}{
		{"match-same", success, expect{}},
		{"match-any", success, expect{}},
		{"match-bare", success, expect{}},
		{"match-weak", notMet, expect{}},
		{"match-two", multiple, expect{}},
		{"none-two", multiple, expect{}},
		{"match-same unmodified-past", success, expect{}},
		{"match-other unmodified-now", notMet, expect{}},
		{"none-other modified-now", success, expect{}},
		{"none-same modified-past", notMet, expect{}},
		{"match-same none-other", multiple, expect{}},
		{"match-same modified-past", multiple, expect{}},
		{"none-other unmodified-now", multiple, expect{}},
		{"modified-past unmodified-now", multiple, expect{}},
		{"match-same unmodified-now modified-past", multiple, expect{}},
		{"match-same tags-true", success, expect{}},
		{"match-same tags-false", notMet, stops(success)},
		{"none-other tags-false", notMet, stops(success)},
		{"unmodified-now tags-false", notMet, stops(success)},
		{"match-other tags-true", notMet, expect{}},
		{"tags-nonsense", "400 InvalidHeaderValue", expect{}},
	} {
		given := x.combination(t, q.list)
		got := callWith(given, func(ctx context.Context) error { _, err := x.any().SetMetadata(ctx, nil, nil); return err })
		q.differ.service = q.service
		q.differ.check(t, h, "write: "+q.list, got)
	}
	fresh(t)
	for _, q := range []struct {
		list    string
		service said
	}{
		{"match-two", success},
		{"none-two", notNew},
		{"match-weak", notMet},
		{"match-bare", success},
		{"match-other modified-past", notMet},
		{"match-other modified-now", notMet},
		{"match-same modified-past", success},
		{"match-same modified-now", notNew},
		{"none-same modified-past", success},
		{"none-other modified-now", success},
		{"none-same modified-now", notNew},
		{"match-same unmodified-past", notMet},
		{"match-same unmodified-now none-other modified-past", success},
		{"match-same unmodified-past none-same modified-past", notMet},
		{"match-same tags-false", notMet},
		{"none-other tags-true", success},
	} {
		given := x.combination(t, q.list)
		got := callWith(given, func(ctx context.Context) error { _, err := x.any().GetProperties(ctx, nil); return err })
		expect{service: q.service}.check(t, h, "read: "+q.list, got)
	}
}
