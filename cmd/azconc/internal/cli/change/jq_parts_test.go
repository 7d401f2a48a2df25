package change

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
)

// bothWays applies an expression to a document by its parts and as a whole, and demands that they agree to the byte. It reports whether
// the parts sufficed.
func bothWays(t *testing.T, expr, text string) bool {
	t.Helper()
	change, err := newJQChange(expr, cli.Env{"WHO=me"})
	if err != nil {
		return false
	}
	jq := change.(*JqChange)
	if jq.parts == nil {
		return false
	}
	sufficed := true
	got, err := jq.parts.apply(t.Context(), []byte(text))
	if err != nil {
		sufficed = false
		jq.above = 0
		got, err = jq.Apply(t.Context(), BaseContent{Exists: true, Data: []byte(text)})
	}
	want, wantErr := (&JqChange{code: jq.code}).Apply(context.Background(), BaseContent{Exists: true, Data: []byte(text)})
	if string(got) != string(want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("%s on %q\nby parts:    %q, %v\nas a whole:  %q, %v", expr, text, got, err, want, wantErr)
	}
	return sufficed
}

// source makes random documents and expressions, of few names, so that they meet.
type source struct{ *rand.Rand }

func (s source) pick(of ...string) string { return of[s.IntN(len(of))] }

func (s source) name() string {
	return s.pick(`"a"`, `"a"`, `"b"`, `"b"`, `"c"`, `"d"`, `"\u0061"`, `""`, "\"\xff\"", `"é"`, `"\ud800"`, `"x\"y\\"`)
}

func (s source) scalar() string {
	return s.pick("1", "1", "2", "1.0", "1.50", "-0", "1e1000", "-1e999", "1e-400", "18446744073709551617", "0.12345678901234567890", "9007199254740993", "1E+2",
		"null", "true", "false", `""`, `"s"`, `"\u0073"`, `"]}\\\""`, "\"\xc3\"", `"é\ud83d\ude00"`, `"<&>\u2028"`, `"\\"`)
}

func (s source) space() string { return s.pick("", "", "", "", " ", "\n", "\t", "\r\n", "  ") }

// text is a document in one of a few styles, or in none.
func (s source) text(depth int, style, indent string) string {
	switch {
	case depth == 0 || s.IntN(4) == 0:
		return s.scalar()
	case s.IntN(12) == 0: // like a constant, but for what does not count
		return s.pick(`{"b":1,"a":2}`, `{"b":1,"a":9,"a":2}`, `{"a":2,"b":9,"b":1}`, `{"b":1,"b":9,"a":2}`, `{ "b" : "s","\u0061":1}`, `{"a":1,"b":1}`, `{"b":{"b":2,"a":1},"a":[1]}`, `{"b":2,"a":1}`)
	}
	between, end, colon := "", "", ":"
	inner := indent
	switch style {
	case "wild":
		between, end, colon = s.space(), s.space(), s.space()+":"+s.space()
	case "spaced":
		colon = ": "
	case "lines":
		inner = indent + "  "
		between, end, colon = "\n"+inner, "\n"+indent, ": "
	case "tabs":
		inner = indent + "\t"
		between, end, colon = "\r\n"+inner, "\r\n"+indent, " : "
	}
	var members []string
	object := s.IntN(2) == 0
	for range s.IntN(5) {
		m := s.text(depth-1, style, inner)
		if len(members) > 0 && !object && s.IntN(3) == 0 { // an equal one, as it is or in another form
			m = members[len(members)-1] + s.pick("", "", " ")
			if last := strings.TrimSpace(m); last == "1" || last == "1.0" {
				m = s.pick("1", "1.0", "1.00")
			}
		}
		switch {
		case object && style == "wild":
			members = append(members, s.space()+s.name()+s.space()+":"+s.space()+m+s.space())
		case object:
			members = append(members, s.name()+colon+m)
		case style == "wild":
			members = append(members, s.space()+m+s.space())
		default:
			members = append(members, m)
		}
	}
	if len(members) == 0 {
		between, end = s.pick("", "", " "), ""
	}
	sep := ","
	if style == "spaced" {
		sep = ", "
	}
	body := strings.Join(members, sep+between)
	if object {
		return "{" + between + body + end + "}"
	}
	return "[" + between + body + end + "]"
}

func (s source) document() string {
	style := s.pick("plain", "spaced", "lines", "tabs", "wild")
	if s.IntN(3) == 0 { // a list of like elements
		var elements []string
		kind := s.IntN(4)
		for range 1 + s.IntN(7) {
			e := s.pick("1", "1", "1.0", "2", "3")
			if kind == 1 || kind == 3 && s.IntN(2) == 0 {
				e = s.pick(`{"a":`+e+`}`, `{"a": `+e+`}`, `{"a":`+e+`,"b":1}`, `{"b":1,"a":`+e+`}`, `{"b":1,"b":`+e+`}`)
			}
			elements = append(elements, s.pick("", "", " ", "\n")+e+s.pick("", "", " "))
		}
		list := "[" + strings.Join(elements, ",") + s.pick("", "\n ") + "]"
		return s.space() + s.pick(list, `{"a":`+list+`,"b":[`+list+`]}`, `{"b": 1,"a":{"b":`+list+`}}`) + s.space()
	}
	text := s.text(4, style, "")
	if s.IntN(3) > 0 {
		text = "{" + s.name() + ":" + text + "," + s.pick("", " ", "\n ") + `"a":` + s.text(3, style, "") + `,"b":` + s.text(2, style, "") + s.space() + "}"
	}
	text = s.space() + text + s.space()
	switch s.IntN(40) {
	case 0:
		text = "\xef\xbb\xbf" + text
	case 1:
		text += s.pick("{}", "1", "]", "\x00", "x")
	case 2:
		if i := s.IntN(len(text) + 1); i < len(text) {
			text = text[:i] + s.pick(",", "", "}", "\"", "\x01", "0") + text[i+1:]
		}
	}
	return text
}

func (s source) path() string {
	path := s.pick(".a", ".a", ".a", ".b", ".b", ".c", `.["a"]`, `."é"`, ".[0]", ".[-1]", `.[""]`, `."\ufffd"`)
	for s.IntN(2) == 0 {
		path += s.pick(".a", ".b", ".c", `["d"]`, "[0]", "[0]", "[1]", "[2]", "[-1]", "[-2]", "[7]")
	}
	if s.IntN(200) == 0 {
		return "."
	}
	return path
}

func (s source) constant() string {
	return s.pick("1", "2", "-1", "null", "true", `"s"`, `"é"`, "{}", "[]", "[1]", "[1,2]", `{a:1}`, `{"b":1,"a":2}`, `{"a":1,"b":"s"}`, `[{"a":1,"b":1},{"b":{"a":1,"b":2},"a":[1]}]`,
		"1.50", "1e1000", "(1,2)", "empty", "$ENV.WHO", `"\(1+1)x"`, "nan", `"\u007f"`, "{(.b|tojson):1}", "{(.a[0]|tojson):1}", `"\(.b)"`, `[{"a":null,"b":true}]`)
}

func (s source) right() string {
	switch s.IntN(5) {
	case 0:
		return s.path()
	case 1:
		return s.path() + " " + s.pick("+", "-", "//", "==", ",") + " " + s.constant()
	case 2:
		return "(" + s.path() + s.pick(" | length", " | type", "[]?", "?", "[1:]", " | tojson", " | {(tojson): 1}", " | if . == 1 then 2 else 3 end") + ")"
	}
	return s.constant()
}

func (s source) edit() string {
	switch s.IntN(12) {
	case 0, 1:
		return s.path() + " = " + s.right()
	case 2, 3:
		return s.path() + " |= " + s.pick(".", "empty", "1", "(. + 1)?", "[.]", "{a: ., b: 1}", "(.,1)", "length", "tojson", "map(.)", ". + [1]", `. + [{"a":1,"b":2}]`, "del(.[0]?)", "(.a? // 5)", "type", "error(\"no\")", ". as $x | [$x, $x]", "def f: [.]; f", "try error catch 1", "first(.[]?)", "walk(.)", "label $f | (1, break $f)", "reduce .[]? as $e (0; . + 1)", "to_entries?", "path(.)", "$ENV.WHO", "getpath([\"a\"])?", "tojson | fromjson", "..", "paths", "infinite", ". + 1 - 1", "-.")
	case 4:
		return s.path() + s.pick(" += ", " -= ", " *= ", " /= ", " %= ", " //= ") + s.right()
	case 5:
		return s.path() + " += " + s.pick("[1]", "[]", `[{"b":1,"a":1}]`, "[.a]", "[.b[0]?]", `{a:1}`, `{"b":{"a":1},c:2}`, "{}", `{a:(1,2)}`, `{("a"):1}`)
	case 6, 7:
		return "del(" + s.path() + ")"
	case 8:
		return "del(" + s.path() + ", " + s.path() + ")"
	case 9:
		return s.pick(". + ", ". * ") + s.pick(`{a:1}`, `{"b":{"a":1},c:2}`, `{a:.b}`, `{a:{b:{c:1}}}`)
	case 10:
		return "(" + s.edit() + ")"
	}
	return s.path() + " = " + s.constant()
}

// list is a path that is likely to be one of a list.
func (s source) list() string { return s.pick("", "", ".a", ".a", ".b", ".a.b", ".b[0]") }

// wide is an edit of each element of a list.
func (s source) wide() string {
	list := s.list()
	some := s.pick(".a", ".b", ".a[0]", ".a.b", "select(. == 1)", "select(type == \"object\") | .a", "select(type == \"object\" and .a == 1) | .b", "..|numbers", "select(.a? == 2)", ".[]?", ".a?", "objects.a", "select(type != \"null\")", "getpath([\"a\", 0])?", "first(.[]?)", "if type == \"object\" then .a else . end", "(.a?, .b?)", ". as $x | .a?", "limit(1; .[]?)", "paths", "select(path(.) == [])", "select(.a?) | .a[0]?", "recurse", "select(tojson | length > 5)", "reduce (0, 1) as $i (.; .)", "try .a catch .", "label $f | (., break $f)", ".. | strings", "empty", "select(IN(1, 2))", ".[0:1]?", "error?", "select(any(.[]?; . == 1))", "def f: .a?; f", "(.a // .b)?")
	f := s.pick(".", "empty", "1", "[.]", "{a: ., b: 1}", "(.,1)", "(1,.)", "type", ". == 1 | not", "(. + 1)?", "(. + 1)? // .", "select(. != 1)", "select(type == \"number\")", "if type == \"object\" then .a = 1 else . end", "if . == 1 then 1.0 else . end",
		"if . == 1 then empty else . end", "if . == 1 then ., . else . end", "tojson", ".a? // 1", "objects", "del(.a?)", "if type == \"number\" then . + 0 else . end", "if type == \"number\" then 3 - . else . end", "if . == 1 then 2 elif . == 2 then 1 else . end", ".[]?", "error",
		"def f: .a?; f // 1", ". as $x | [$x, $x]", "label $out | (., break $out, 2)", "reduce .[]? as $e (0; . + 1)", "try error catch .", "getpath([\"a\"])?", "path(.)", "to_entries?", "walk(if . == 1 then 2 else . end)", "first(.[]?, 9)", "limit(1; .[]?)",
		"@json", "@base64?", "keys?", "$__loc__", "env.WHO", "$ENV | .WHO", "-(.)?", "[..]", "select(path(.) == [])", "(.a, .b)?", ".[1:]?", ".[0:1] = []?", "paths", "tojson | fromjson", "@text \"<\\(.)>\"", "[limit(2; repeat(.))]", "until(true; .)", ".[-1]?", "if . then empty end", "splits(\"a\")?", "ascii_downcase?", "isnan?", "infinite", "nan", "1e1000", "has(\"a\")?", "getpath([])", "delpaths([[\"a\"]])?", "tostream", "input_line_number")
	switch s.IntN(8) {
	case 0:
		return s.pick(list, "") + s.pick("", ".") + "[] |= " + f
	case 1, 2:
		if list == "" {
			return s.pick("map("+f+")", "[.[] | "+f+"]")
		}
		return list + " |= " + s.pick("map("+f+")", "[.[] | "+f+"]")
	case 3:
		return "(" + s.pick(list, ".") + "[] | " + some + ") |= " + f
	case 4:
		return "(" + s.pick(list, ".") + "[] | " + some + ") " + s.pick("=", "=", "+=", "-=", "//=") + " " + s.constant()
	case 5:
		return "del(" + s.pick(list, ".") + "[] | " + some + ")"
	case 6:
		return "(" + s.pick(list, ".") + "[] | " + s.pick("objects", "select(type == \"object\")", "arrays") + ")" + s.pick(".a", ".b", "[0]", ".a[]", "[]") + s.pick(" = ", " |= ") + s.pick("1", "2", "null", `{"b":1,"a":2}`, "[]")
	}
	return s.pick(list, ".") + "[]" + s.pick(".a", ".b", "[0]", "", ".a.b") + s.pick(" = ", " += ", " |= ") + s.pick("1", "2", `{"b":1,"a":2}`, "[1]")
}

func (s source) expression() string {
	if s.IntN(3) == 0 {
		expr := s.wide()
		if s.IntN(5) == 0 {
			expr = s.pick(expr+" | "+s.edit(), s.edit()+" | "+expr, expr+" | "+s.wide())
		}
		return expr
	}
	if s.IntN(20) == 0 { // one element twice
		element := s.pick(".a", ".b", ".", ".a.b") + s.pick("[0]", "[1]", "[-1]")
		return s.pick(element+" |= empty", element+" |= empty", "del("+element+")", element+" |= 3") + " | " + s.pick(element+" = 5", element+".a |= 1", ".c = "+element)
	}
	expr := s.edit()
	for s.IntN(3) == 0 {
		expr += " | " + s.edit()
	}
	return expr
}

func TestPartsOfADocumentGiveWhatTheWholeGives(t *testing.T) {
	const rounds = 4000
	s := source{rand.New(rand.NewPCG(1, 2))}
	sufficed := 0
	for range rounds {
		if bothWays(t, s.expression(), s.document()) {
			sufficed++
		}
	}
	if sufficed < rounds/5 {
		t.Errorf("parts sufficed in %d of %d cases, so that this shows little", sufficed, rounds)
	}
}

func TestPartsSufficeForEditsAtPaths(t *testing.T) {
	const text = `{"n":1,"o":{"k":{"b":1,"a":2},"n":null,"k":{"b":1,"a":3}},"l":[1,1.0,{"x":1,"x":2},{ "x" : 2 } , {"x":2}],"":[]}`
	for _, expr := range []string{
		".n += 1", ".n |= (. + 1 | . * 2)", `.o.k.a = 5`, `.o["k"]["a"] -= .n`, `.["o"].new = {"b":1,"a":3}`, `.o.new = {"b":1,"a":2}`, "del(.o)", "del(.o.k)", "del(.n, .o.n)",
		".l += [{n: .n}, $ENV.WHO]", ".l |= . + [1]", `.l = []`, ".l[0] = 2", ".l[-1].x |= empty", ".l[2] |= empty", ".l[0] |= empty", "del(.l[0])", "del(.l[1])", "del(.l[3])", "del(.l[-2])", "del(.l[4])",
		`.o += {"k":1,"z":[]}`, `. + {"n":2}`, `. * {o:{k:{c:1}}}`, ".at = (now | type)", ".n = 1", ".n = (.o.k.a | tojson)", `.s = "\(.n)-\(.o.k.b)"`, "(.n) = 3 | (del(.l) | .o.n //= 4)",
		".o.n.deep.deeper = 1", ".n = if .o.n then 1 else 2 end", ".n = [.l[2][], .l[0]?]", ".l[7] = 1", `.[""] += [1]`,
		"del(.l[0], .l[1])", "del(.l[0]) | .l[0] = 3", ".l[0] |= empty | .n = .l[0]", ".l[0] = 1 | .l[1] = 1",
		".l[] |= 1", "del(.l[] | select(. == 1))", "(.l[] | objects | select(.x == 2)).x += 1", ".l |= map(objects) | .n = 2", ".l |= [.[] | ., 7] | .l |= map(numbers)", "(.l[] | .x?) |= empty", `.l |= map({b: 1, a: .})`,
	} {
		if !bothWays(t, expr, text) {
			t.Errorf("%s needs the whole document", expr)
		}
	}
	for _, expr := range []string{
		".", ". = 1", ".n = .", ".n |= error", ".[] = 1", ".l[0:1] = []", ".n = ([.[]] | length)", "map_values(.)", "def del(f): 1; del(.n)", ".l[.n] = 1", ".o[.n|tostring] = 1", `.n = (. as $x | 1)`, ".n = input", `.x = {n}`,
		".n.x = 1", ".l.x = 1", ".o[0] = 1", ".n?", "(.n, .o) = 1", "empty", ".n = (1, 2)", "del(.n) | del(.)",
		"map(.)", ".o[] |= 1", ".o |= map(.)", ".l[].x? |= 1", ".l[].x = 1", ".l[] = .n", ".l[] |= now", "first(.l[]) |= 1", ".l[] |= 1 | .l[0] = 2", ".n = (.l | length) | .l[] |= 1", `.l[] |= 1 | .[""] |= map(.)`, `.[""][] = 1`, ".l[] = empty", ".l[] = (1, 2)", "del(.l) | .l[] |= 1", ".m[] |= 1", ".l |= map(error)",
	} {
		if bothWays(t, expr, text) {
			t.Errorf("%s does not need the whole document", expr)
		}
	}
}

// A document that is large enough takes the way by parts, which has to tell what is wrong with it as the other one does.
func TestALargeDocumentIsRefusedAsASmallOneIs(t *testing.T) {
	jq, err := newJQChange(".n += 1", nil)
	if err != nil {
		t.Fatal(err)
	}
	padding := `{"n":1,"s":"` + strings.Repeat("x", partsAbove) + `"`
	for _, c := range []struct{ end, want string }{{"}", ""}, {"", "unexpected EOF"}, {"}{}", "more than one JSON value"}, {",}", "invalid character"}, {`,"n":"s"}`, "cannot add"}} {
		switch got, err := applied(t, jq, padding+c.end); {
		case c.want == "" && (err != nil || !strings.HasPrefix(got, `{"n":2,"s":"x`)):
			t.Errorf("…%s: %.20q, %v", c.end, got, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("…%s: %v, want %q", c.end, err, c.want)
		}
	}
}

func FuzzPartsOfADocument(f *testing.F) {
	for _, text := range []string{`{"a":1,"b":[1,1.0,2],"a":{"b":2}}`, "{\n  \"a\": [\n    {}\n  ]\n}\n", `{"a":[{"a":1e1000}]} x`, ""} {
		f.Add(uint64(1), []byte(text))
	}
	f.Fuzz(func(t *testing.T, seed uint64, text []byte) {
		s := source{rand.New(rand.NewPCG(seed, 0))}
		if len(text) == 0 {
			text = []byte(s.document())
		}
		bothWays(t, s.expression(), string(text))
	})
}
