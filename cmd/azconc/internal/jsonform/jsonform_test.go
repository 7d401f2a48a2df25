package jsonform

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/itchyny/gojq"
)

// rewritten parses and rewrites a text.
func rewritten(base string, value any) (string, error) {
	doc, err := Parse([]byte(base))
	if err != nil {
		return "", err
	}
	text, err := doc.Rewrite(value)
	return string(text), err
}

// changed applies a jq expression, as azconc does.
func changed(t *testing.T, base, expr string) any {
	t.Helper()
	query, err := gojq.Parse(expr)
	if err != nil {
		t.Fatal(err)
	}
	value, _ := query.Run(decoded(t, []byte(base))).Next()
	if err, failed := value.(error); failed {
		t.Fatal(err)
	}
	return value
}

func decoded(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := decoder(text).Decode(&v); err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	return v
}

func decoder(text []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d
}

func TestOnlyTheChangeChangesTheText(t *testing.T) {
	pretty := "{\n  \"z\": 1,\n  \"a\": [1, 2, 3],\n  \"m\": {\n    \"y\": 1.50,\n    \"b\": \"\\u00e9\"\n  },\n  \"e\": {}\n}\n"
	for _, c := range []struct{ base, expr, want string }{
		// one line
		{`{"b":1,"a":2}`, `.b += 1`, `{"b":2,"a":2}`},
		{`{"b": 1, "a": 2}`, `.b += 1 | .c = [1,{"y":1,"x":2}]`, `{"b": 2, "a": 2, "c": [1, {"x": 2, "y": 1}]}`},
		{`{"b": 1, "a": 2, "c": 3}`, `del(.b)`, `{"a": 2, "c": 3}`},
		{`{"b": 1, "a": 2, "c": 3}`, `del(.c)`, `{"b": 1, "a": 2}`},
		{`{ "b": 1, "a": 2 }`, `del(.b) | .c = 3`, `{ "a": 2, "c": 3 }`},
		{`{ "b" : 1 }`, `.c = 3`, `{ "b" : 1, "c" : 3 }`},
		{`{"b":1}`, `del(.b)`, `{}`},
		{`{"b":1}`, `.b = {}`, `{"b":{}}`},
		{`{}`, `.b = 1 | .a = 2`, `{"a":2,"b":1}`},
		{" {} \n\n", `.n = 1`, " {\"n\":1} \n\n"},
		{`1`, `.+1`, `2`},
		{"null\n", `{a: [1,2]}`, "{\"a\":[1,2]}\n"},
		{`{"a":1,"b":2,"a":3}`, `.b = 4`, `{"b":4,"a":3}`},
		// numbers as they were written
		{`{"big":18446744073709551617,"f":1.0,"e":1e3,"n":1}`, `.n += 1`, `{"big":18446744073709551617,"f":1.0,"e":1e3,"n":2}`},
		{`[0.12345678901234567890, -0, 1E+2]`, `. + [1]`, `[0.12345678901234567890, -0, 1E+2, 1]`},
		// lists
		{`[1,2,3]`, `del(.[0])`, `[2,3]`},
		{`[1, 2, 3]`, `del(.[1])`, `[1, 3]`},
		{`[1]`, `. + [2]`, `[1,2]`},
		{`{"l": [1]}`, `.l += [2]`, `{"l": [1, 2]}`},
		{`[{"b":1,"a":1.0},{"b":2,"a":2.0}]`, `reverse`, `[{"b":2,"a":2.0},{"b":1,"a":1.0}]`},
		{`[{"b":1,"a":1.0},{"b":2,"a":2.0},{"b":3,"a":3}]`, `map(select(.b != 2)) | .[0].b = 9`, `[{"b":9,"a":1.0},{"b":3,"a":3}]`},
		{`[{"b":1,"a":1}]`, `. + .`, `[{"b":1,"a":1},{"a":1,"b":1}]`},
		// several lines
		{pretty, `.z += 1`, "{\n  \"z\": 2,\n  \"a\": [1, 2, 3],\n  \"m\": {\n    \"y\": 1.50,\n    \"b\": \"\\u00e9\"\n  },\n  \"e\": {}\n}\n"},
		{pretty, `.a += [{"k":[]}] | .m.n = [1,{"q":1}] | .e.x = 1 | del(.z)`, "{\n  \"a\": [1, 2, 3, {\"k\": []}],\n  \"m\": {\n    \"y\": 1.50,\n    \"b\": \"\\u00e9\",\n    \"n\": [\n      1,\n      {\n        \"q\": 1\n      }\n    ]\n  },\n  \"e\": {\n    \"x\": 1\n  }\n}\n"},
		{pretty, `.m.b = 1 | .e = 2 | .a = []`, "{\n  \"z\": 1,\n  \"a\": [],\n  \"m\": {\n    \"y\": 1.50,\n    \"b\": 1\n  },\n  \"e\": 2\n}\n"},
		{pretty, `.e = .m | del(.m)`, "{\n  \"z\": 1,\n  \"a\": [1, 2, 3],\n  \"e\": {\n    \"b\": \"é\",\n    \"y\": 1.50\n  }\n}\n"},
		{"{\r\n\t\"a\": {\r\n\t\t\"b\": 1\r\n\t}\r\n}", `.c.d = 1`, "{\r\n\t\"a\": {\r\n\t\t\"b\": 1\r\n\t},\r\n\t\"c\": {\r\n\t\t\"d\": 1\r\n\t}\r\n}"},
		{"[\n    {\"b\": 1, \"a\": 2},\n    {\"b\": 3, \"a\": 4}\n]\n", `.[1].a = 5 | . + [{"a":6}]`, "[\n    {\"b\": 1, \"a\": 2},\n    {\"b\": 3, \"a\": 5},\n    {\n        \"a\": 6\n    }\n]\n"},
		{"{\n  \"a\": 1\n}\n", `{a, b: 2, c: 3}`, "{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3\n}\n"},
		{"{\n  \"a\": 1\n}\n", `[.]`, "[\n  {\n    \"a\": 1\n  }\n]\n"},
	} {
		value := changed(t, c.base, c.expr)
		got, err := rewritten(c.base, value)
		if err != nil || got != c.want {
			t.Errorf("%s on %s:\n%s\nwant\n%s\n(%v)", c.expr, c.base, got, c.want, err)
		}
	}
}

func TestSetMakesWhatIsMissingOnTheWay(t *testing.T) {
	path := func(steps ...any) (path []Step) {
		for _, step := range steps {
			if i, ok := step.(int); ok {
				path = append(path, Step{Index: i, List: true})
			} else {
				path = append(path, Step{Name: step.(string)})
			}
		}
		return path
	}
	for _, c := range []struct {
		base string
		path []Step
		text string
		want string // or part of the error
	}{
		{`{"a": 1}`, path("n"), `{"y":1.50,"x":{"q":1,"p":2}}`, `{"a": 1, "n": {"x": {"p": 2, "q": 1}, "y": 1.50}}`},
		{"{\n  \"a\": 1\n}\n", path("n", "m"), `[1]`, "{\n  \"a\": 1,\n  \"n\": {\n    \"m\": [\n      1\n    ]\n  }\n}\n"},
		{`{"c":[1,2]}`, path("c", 0), `3`, `{"c":[3,2]}`},
		{`{"c":[1,2]}`, path("c", 2), `3`, `{"c":[1,2,3]}`},
		{`{"c":[1,2]}`, path("c", "1"), `3`, `{"c":[1,3]}`},
		{`{}`, path("c", 0, "d"), `3`, `{"c":[{"d":3}]}`},
		{`null`, path("c"), `3`, `{"c":3}`},
		{`{"a":1,"a":2}`, path("a"), `3`, `{"a":3}`},
		{`{"a":1.0}`, path("a"), `1`, `{"a":1.0}`},
		{`{"c":[1,2]}`, path("c", 3), `3`, `"3" is not an index of an array of 2`},
		{`{"c":{}}`, path("c", 0), `3`, `[0] is a path into an object`},
		{`{"c":1}`, path("c", "d"), `3`, `"d" is a path into something`},
		{"{\n  // how many\n  \"n\": 1, // one\n  \"l\": [\n    1,\n  ],\n}\n", path("n"), `2`, "{\n  // how many\n  \"n\": 2, // one\n  \"l\": [\n    1,\n  ],\n}\n"},
		{"{\n  \"l\": [\n    1, // one\n  ],\n}\n", path("l", 1), `2`, "{\n  \"l\": [\n    1, // one\n    2,\n  ],\n}\n"},
		{"{\n  \"n\": 1 // one\n}\n", path("m"), `2`, "{\n  \"n\": 1, // one\n  \"m\": 2\n}\n"},
	} {
		doc, err := Parse([]byte(c.base))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err = doc.Set(c.path, decoded(t, []byte(c.text))); err == nil {
			got = string(doc.Text())
		}
		if got != c.want && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v = %s in %s:\n%s, %v\nwant\n%s", c.path, c.text, c.base, got, err, c.want)
		}
	}
}

// A file of settings may have comments and trailing commas.
func TestCommentsStayWithTheirValues(t *testing.T) {
	base := "// all\n{\n  // a\n  \"a\": 1,\n\n  // b\n  \"b\": [1, /* two */ 2], // last\n}\n"
	for _, c := range []struct{ expr, want string }{
		{`.`, base},
		{`.b[1] = 3`, "// all\n{\n  // a\n  \"a\": 1,\n\n  // b\n  \"b\": [1, /* two */ 3], // last\n}\n"},
		{`del(.a)`, "// all\n{\n\n  // b\n  \"b\": [1, /* two */ 2], // last\n}\n"},
		{`.c = 1`, "// all\n{\n  // a\n  \"a\": 1,\n\n  // b\n  \"b\": [1, /* two */ 2], // last\n  \"c\": 1,\n}\n"},
	} {
		doc, err := Parse([]byte(base))
		if err != nil {
			t.Fatal(err)
		}
		query, err := gojq.Parse(c.expr)
		if err != nil {
			t.Fatal(err)
		}
		value, _ := query.Run(doc.Value()).Next()
		if got, err := doc.Rewrite(value); err != nil || string(got) != c.want {
			t.Errorf("%s:\n%s\nwant\n%s\n(%v)", c.expr, got, c.want, err)
		}
	}
}

func TestWhatIsNestedTooDeepIsRefused(t *testing.T) {
	for _, text := range []string{strings.Repeat("[", 1<<20), strings.Repeat(`{"a":`, 1<<20), strings.Repeat("[//\n", 1<<20), strings.Repeat(`"]",[`, 1<<20)} {
		if doc, err := Parse([]byte(text)); err == nil {
			t.Errorf("%.20s…: %v", text, doc)
		}
	}
	if doc, err := Parse([]byte(strings.Repeat("[", deepest) + strings.Repeat("]", deepest))); err != nil || doc.Value() == nil {
		t.Error(err)
	}
	if _, err := Parse([]byte(`["` + strings.Repeat("[", 2*deepest) + `"/*` + strings.Repeat("[", 2*deepest) + `*/]`)); err != nil {
		t.Error(err)
	}
}

func TestALiteralThatChangedInItsLastDigitIsAChange(t *testing.T) {
	got, err := rewritten(`{"n":0.12345678901234567890}`, map[string]any{"n": json.Number("0.12345678901234567891")})
	if err != nil || got != `{"n":0.12345678901234567891}` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestWhatIsNotOneValueIsRefused(t *testing.T) {
	for _, base := range []string{`{`, `{} {}`, `nope`, `{"a":}`, `[1,,]`, `{,}`, `/*`, ``} {
		if got, err := rewritten(base, nil); err == nil {
			t.Errorf("%s: %s", base, got)
		}
	}
}

func TestParsingGivesWhatDecodingGives(t *testing.T) {
	for _, text := range []string{
		`null`, ` true `, "\tfalse\n", `-0.10e+5`, `12345678901234567890123`, `""`, `"a\"b\\"`, `"\u00e9\ud83d\ude00\ud800"`, "\"\xff\xc3\"", `"é"`,
		`[]`, `[ ]`, `{}`, `{ }`, `[1,[2,{"a":[]}],"]"]`, `{"a":1,"a":{"b":"}"},"\u0061":[null, false ,true]}`, " { \"x\" : [ 1 , 2 ] , \"y\\n\" : \"\" } ",
	} {
		var want any
		if err := decoder([]byte(text)).Decode(&want); err != nil {
			t.Fatal(err)
		}
		if doc, err := Parse([]byte(text)); err != nil || !reflect.DeepEqual(doc.Value(), want) {
			t.Errorf("%q: %#v, %v, want %#v", text, doc.Value(), err, want)
		}
	}
}

// FuzzRewrite holds four things against any pair of documents: parsing gives what decoding gives, the result is the value, an unchanged value changes no
// byte, and writing the same value again changes nothing.
func FuzzRewrite(f *testing.F) {
	f.Add([]byte("{\n  \"b\": 1.0,\n  \"a\": [1, 2]\n}\n"), []byte(`{"b":1.0,"a":[2],"c":{"d":null}}`))
	f.Add([]byte(`[{"a":1},{"b":2}]`), []byte(`[{"b":2},{"a":1},3]`))
	f.Add([]byte(`{"a":1,"a":2}`), []byte(`{"a":2,"b":"\u2028"}`))
	f.Fuzz(func(t *testing.T, base, to []byte) {
		var before, after any
		if !json.Valid(base) || !json.Valid(to) || decoder(base).Decode(&before) != nil || decoder(to).Decode(&after) != nil {
			t.Skip()
		}
		if doc, err := Parse(base); err != nil || !reflect.DeepEqual(doc.Value(), before) {
			t.Fatalf("%q is %v, want %v", base, doc.Value(), before)
		}
		if same, err := rewritten(string(base), before); err != nil || same != string(base) {
			t.Fatalf("unchanged: %q, %v, want %q", same, err, base)
		}
		out, err := rewritten(string(base), after)
		if err != nil || !json.Valid([]byte(out)) {
			t.Fatalf("%q, %v: not JSON", out, err)
		}
		if got := decoded(t, []byte(out)); !same(got, after) || !same(after, got) {
			t.Fatalf("%q holds %v, want %v", out, got, after)
		}
		if again, err := rewritten(out, after); err != nil || again != out {
			t.Fatalf("again: %q, %v, want %q", again, err, out)
		}
	})
}
