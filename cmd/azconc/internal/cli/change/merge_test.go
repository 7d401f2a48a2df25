package change

import "testing"

func TestChangesOfDifferentLinesMerge(t *testing.T) {
	for _, c := range []struct{ name, base, mine, theirs, want string }{
		{"apart", "a\nb\nc\nd\n", "A\nb\nc\nd\n", "a\nb\nc\nD\n", "A\nb\nc\nD\n"},
		{"alike", "a\nb\n", "a\nX\n", "a\nX\n", "a\nX\n"},
		{"only mine", "a\nb\n", "b\n", "a\nb\n", "b\n"},
		{"only theirs", "a\nb\n", "a\nb\n", "", ""},
		{"insertions", "a\nb\nc\n", "0\na\nb\nc\n", "a\nb\nc\nd\n", "0\na\nb\nc\nd\n"},
		{"no newline at the end", "a\nb\nc", "A\nb\nc", "a\nb\nC", "A\nb\nC"},
		{"nothing", "", "", "", ""},
		{"several each", "1\n2\n3\n4\n5\n6\n7\n", "1\nx\n3\n4\n5\ny\n7\n", "1\n2\n3\nz\n5\n6\n7\n8\n", "1\nx\n3\nz\n5\ny\n7\n8\n"},
	} {
		if got, clean := Merge3(c.base, c.mine, c.theirs); !clean || got != c.want {
			t.Errorf("%s: merge3 = %q, %v, want %q", c.name, got, clean, c.want)
		}
	}
}

func TestChangesOfOneLineDoNotMerge(t *testing.T) {
	got, clean := Merge3("a\nn=10\nz\n", "a\nn=20\nz\n", "a\nn=15\nz\n")
	want := "a\n<<<<<<< yours\nn=20\n||||||| the common base\nn=10\n=======\nn=15\n>>>>>>> theirs\nz\n"
	if clean || got != want {
		t.Errorf("merge3 = %v\n%swant\n%s", clean, got, want)
	}
	if !HasMarkers(got) || HasMarkers("a\n=======\n") {
		t.Error("hasMarkers does not know a conflict when it sees one")
	}
	for _, c := range []struct{ name, base, mine, theirs string }{
		{"neighbours", "a\nb\nc\n", "A\nb\nc\n", "a\nB\nc\n"},
		{"deleted and changed", "a\nb\nc\n", "a\nc\n", "a\nB\nc\n"},
		{"both insert", "a\nb\n", "a\n1\nb\n", "a\n2\nb\n"},
		{"one line without end", `{"n":1}`, `{"n":2}`, `{"n":3}`},
		{"all gone", "a\n", "b\n", ""},
	} {
		if got, clean := Merge3(c.base, c.mine, c.theirs); clean || !HasMarkers(got) {
			t.Errorf("%s: merge3 = %q, clean %v, want a conflict", c.name, got, clean)
		}
	}
}

// Two changes that merge as text can still make no JSON: both add a member after the last one, say.
func TestAMergeThatBreaksJSONIsAConflict(t *testing.T) {
	base := "{\n \"a\": 1,\n \"b\": 2,\n \"c\": 3\n}\n"
	mine := "{\n \"a\": 1\n}\n"
	theirs := "{\n \"a\": 1,\n \"b\": 2,\n \"c\": 3,\n \"d\": 4\n}\n"
	if got, clean := Merge3(base, mine, theirs); clean {
		t.Errorf("merge3 = %q, want a conflict", got)
	}
	broken, clean := Merge3("[\n1,\n2,\n3\n]\n", "[\n\n2,\n3\n]\n", "[\n1,\n2\n]\n")
	if clean {
		t.Errorf("merge3 = %q, want a conflict", broken)
	}
}
