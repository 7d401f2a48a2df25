package root

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestARefusalNamesWhatDoesNotHold gives each verb each condition that it takes, so that it does not hold. "changed by another writer"
// was said of an index tag or a date, too, and the hint to give --if-match.
func TestARefusalNamesWhatDoesNotHold(t *testing.T) {
	const other = "1f812371-a41d-49e6-b123-f4b542e851c5"
	verbs := []string{
		"blob put jobs/a --file -", "blob update jobs/a --set n=2", "blob delete jobs/a", "blob metadata set jobs/a k=v", "blob metadata update jobs/a k=v",
		"blob headers set jobs/a --content-type text/x", "blob tags set jobs/a k=v", "blob snapshot jobs/a", "blob copy jobs/b jobs/a", "blob append jobs/l --file -",
		"blob page create jobs/p --size 512", "blob page clear jobs/p --offset 0 --size 512", "blob show jobs/a", "blob get jobs/a", "blob metadata show jobs/a", "blob lease acquire jobs/a",
		"blob block commit jobs/a x", "blob page ranges jobs/p", "container delete jobs", "container metadata set jobs k=v", "container lease acquire jobs",
	}
	for _, verb := range verbs {
		words := strings.Fields(verb)
		cmd := leaf(words)
		on := words[targetOf(words)]
		synctest.Test(t, func(t *testing.T) {
			s := aztest.New(nil)
			do := func(args ...string) ran {
				return runOn(t.Context(), s, func(s *cli.Streams) { s.In = strings.NewReader(`{"n":1}`) }, nil, args...)
			}
			for line := range strings.Lines("container create jobs\nblob put jobs/a --file -\nblob put jobs/b --file -\nblob page create jobs/p --size 512\nblob append jobs/l --file - --create\nblob block put jobs/a --id x --file -\n") {
				if r := do(strings.Fields(line)...); r.code != 0 {
					t.Fatal(line, r)
				}
			}
			noun := "blob"
			if !strings.Contains(on, "/") {
				noun = "container"
			}
			leased := false
			for _, c := range []struct {
				flag, value string
				leased      bool
			}{
				{"if-match", `"0x1"`, false}, {"if-none-match", "", false}, {"if-modified-since", "2999-01-01", false}, {"if-unmodified-since", "1999-01-01", false},
				{"if-tags", `"state" = 'done'`, false}, {"source-if-match", `"0x1"`, false}, {"source-if-modified-since", "2999-01-01", false},
				{"source-if-unmodified-since", "1999-01-01", false}, {"lease-id", other, false}, {"lease-id", other, true}, {"", "", true}, // which may succeed
			} {
				takes := strings.Contains(verb, "lease acquire") // what a held lease refuses, and an id that is the one to take
				if c.flag != "" && cmd.Flags().Lookup(c.flag) == nil || takes && (c.flag == "" || c.flag == "lease-id") {
					continue
				}
				value := c.value
				if c.flag == "if-none-match" {
					value, _ = do(noun, "show", on, "-o", "json").json(t)["etag"].(string)
				}
				if c.leased && !leased {
					if r := do(noun, "lease", "acquire", on); r.code != 0 {
						t.Fatal(r)
					}
					leased = true
				}
				args := words
				if c.flag != "" {
					args = append(args[:len(args):len(args)], "--"+c.flag, value)
				}
				r := do(args...)
				message, rest, _ := strings.Cut(r.stderr, "\n")
				_, hint, _ := strings.Cut(rest, "hint: ")
				switch {
				case r.code == 0 && c.leased && c.flag == "": // the lease does not keep the verb out
				case c.flag == "" || c.flag == "lease-id":
					if r.code != 6 && r.code != 9 || !strings.Contains(hint, "--lease-id") || !strings.Contains(hint, "azconc "+noun+" lease ") || !strings.Contains(hint, on) {
						t.Errorf("azconc %q, leased %v: exit %d, %s", args, c.leased, r.code, r.stderr)
					}
				case r.code == 4 && strings.HasSuffix(message, "not modified"):
				case c.flag == "if-match" && strings.Contains(message, "changed by another writer: expected ETag"):
				case r.code != 4 || !strings.Contains(message, "--"+c.flag+" does not hold") || strings.Contains(message, "another writer") || hint == "" || strings.Contains(hint, "to replace"):
					t.Errorf("azconc %q: exit %d, %s", args, r.code, r.stderr)
				}
			}
		})
	}
}

// targetOf returns which word names the resource that a command is about.
func targetOf(words []string) (at int) {
	for i, w := range words {
		if strings.HasPrefix(w, "jobs") {
			at = i
		}
	}
	return at
}

// A refusal for a lease names the command that ends it: that of a lock, or of a state, where the metadata say what it is.
func TestARefusalForALeaseSaysHowItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := aztest.New(nil), 0
		do := func(args string) ran {
			n++ // an update with the same content writes nothing
			return runOn(t.Context(), s, func(s *cli.Streams) { s.In = strings.NewReader(strconv.Itoa(n)) }, nil, strings.Fields(args)...)
		}
		for line := range strings.Lines("container create jobs\nblob put jobs/state --file - --metadata terraformlockid=eyJJRCI6IngifQ==\nblob put jobs/nightly --file - --metadata azconclock=1\nblob put jobs/a --file -\nblob lease acquire jobs/state\nblob lease acquire jobs/nightly\nblob lease acquire jobs/a\n") {
			if r := do(line); r.code != 0 {
				t.Fatal(line, r)
			}
		}
		for args, want := range map[string]string{
			"blob put jobs/a --file -":        "azconc blob lease break jobs/a ends that of another holder",
			"blob delete jobs/a":              "azconc blob lease break jobs/a ends that of another holder",
			"blob update jobs/state --file -": "azconc tf unlock jobs/state",
			"blob put jobs/nightly --file -":  "azconc lock break jobs/nightly",
		} {
			if r := do(args); r.code != 6 || !strings.Contains(r.stderr, want) {
				t.Errorf("azconc %s: exit %d, %s, want %s", args, r.code, r.stderr, want)
			}
		}
	})
}

// Two conditions are told apart where the version shows which of them does not hold.
func TestARefusalOfTwoConditionsNamesTheOneThatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		do := func(args ...string) ran {
			return runOn(t.Context(), s, func(s *cli.Streams) { s.In = strings.NewReader("x") }, nil, args...)
		}
		do("container", "create", "jobs")
		etag, _ := do("blob", "put", "jobs/a", "--file", "-", "-o", "json").json(t)["etag"].(string)
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"blob", "put", "jobs/a", "--file", "-", "--if-match", etag, "--if-tags", `"a" = 'b'`}, "jobs/a: --if-tags does not hold"},
			{[]string{"blob", "show", "jobs/a", "--if-match", etag, "--if-tags", `"a" = 'b'`}, "jobs/a: --if-match or --if-tags does not hold"},
			{[]string{"blob", "put", "jobs/a", "--file", "-", "--if-match", "0x1", "--if-tags", `"a" = 'b'`}, "expected ETag"},
		} {
			if r := do(c.args...); r.code != 4 || !strings.Contains(r.stderr, c.want) {
				t.Errorf("azconc %q: exit %d, %s, want %s", c.args, r.code, r.stderr, c.want)
			}
		}
	})
}

// What was deleted under --if-match was a conflict to some verbs, and not found to others.
func TestWhatIsGoneUnderIfMatchIsAConflict(t *testing.T) {
	const weak = `W/"datetime'2026-01-01T00%3A00%3A00Z'"`
	onAccount(t, "container create jobs\ntable create jobs\nshare create reports\n", func(do func(...string) ran) {
		for _, args := range [][]string{
			{"blob", "put", "jobs/a", "--file", "-", "--if-match", "0x1"},
			{"blob", "update", "jobs/a", "--set", "n=1", "--if-match", "0x1"},
			{"blob", "delete", "jobs/a", "--if-match", "0x1"},
			{"blob", "metadata", "set", "jobs/a", "k=v", "--if-match", "0x1"},
			{"blob", "show", "jobs/a", "--if-match", "0x1"},
			{"blob", "copy", "jobs/b", "jobs/a", "--if-match", "0x1"},
			{"table", "merge", "jobs/eu/1", "--set", "n=1", "--if-match", weak},
			{"table", "merge", "jobs/eu/1", "--set", "t=true", "--if-match", weak},
			{"table", "replace", "jobs/eu/1", "--set", "n=1", "--if-match", weak},
			{"table", "update", "jobs/eu/1", "--set", "n=1", "--if-match", weak},
			{"table", "delete-entity", "jobs/eu/1", "--if-match", weak},
			{"blob", "put", "none/a", "--file", "-", "--if-match", "0x1"},
			{"table", "merge", "none/eu/1", "--set", "n=1", "--if-match", weak},
		} {
			r := do(append(args, "-o", "json")...)
			v := r.json(t)
			switch {
			case strings.HasPrefix(args[2], "none/"):
				if r.code != 3 {
					t.Errorf("azconc %q: exit %d, %v, want 3: there is nothing around it", args, r.code, v)
				}
			case args[1] == "copy": // its source is missing
			case r.code != 4 || v["outcome"] != "conflict" || v["reason"] != "gone" || v["base_etag"] == "" || !strings.HasPrefix(v["error"].(string), "gone"):
				t.Errorf("azconc %q: exit %d, %v, want 4 and gone", args, r.code, v)
			}
		}
	})
}
