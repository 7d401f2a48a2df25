package tables

import (
	"encoding/json"
	"maps"
	"testing"
)

var memberSeeds = []string{
	`{}`, ` { } `, `null`, ` null `, `{"a":1}`, "\n{ \"a\" :\t1 , \"b\":\"x,}\\\"y\" ,\r\n\"c\":{\"d\":[1,\"]\",{}]},\"e\":[],\"f\":true}",
	`{"a":1,"a":"2"}`, `{"\u0061\"":null}`, `{"ä":"ä"}`, "{\"\xff\":\"\xff\"}", `{"a":-1.5e3}`, `{"a":1}x`, `{"a":}`, `{"a"}`, `[1]`, `"a"`, `1`, ``, ` `, `{`, `{"a":1,}`,
	`{"n@odata.type":"Edm.Int64","n":"1"}`, `{"":""}`, `{"a":"\\"}`, `{"a":"\\\""}`,
}

// TestTheMembersOfAnObjectAreThoseThatEncodingJSONFinds compares names, values and refusals.
func TestTheMembersOfAnObjectAreThoseThatEncodingJSONFinds(t *testing.T) {
	for _, text := range memberSeeds {
		sameMembers(t, []byte(text))
	}
}

// FuzzMembersAreThoseOfEncodingJSON reads any text.
func FuzzMembersAreThoseOfEncodingJSON(f *testing.F) {
	for _, text := range memberSeeds {
		f.Add([]byte(text))
	}
	f.Fuzz(sameMembers)
}

func sameMembers(t *testing.T, data []byte) {
	t.Helper()
	var want map[string]json.RawMessage
	wantErr := json.Unmarshal(data, &want)
	got, err := membersOf(data)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%q: %v, encoding/json: %v", data, err, wantErr)
	}
	if err == nil && !maps.EqualFunc(got, want, func(a string, b json.RawMessage) bool { return a == string(b) }) {
		t.Errorf("%q has the members %q, encoding/json finds %q", data, got, want)
	}
}
