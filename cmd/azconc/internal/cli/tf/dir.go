package tf

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
)

// given are the attributes of an http backend that must come from the environment.
var given = []string{"address", "lock_address", "unlock_address", "username", "password"}

// checkDir judges the directory in which a command works: dir, or the one of its -chdir. The error is one of usage if the command would
// not take its state from TF_HTTP_*, as far as that can be seen. A client prefers the attributes of the backend block, then what init has
// stored, and then TF_HTTP_*: with an address that is stored, it would lock at one place and read at another.
func checkDir(dir string, command []string, lookup func(string) string, state ref.Blob) error {
	if w := lookup("TF_WORKSPACE"); w != "" && w != "default" {
		return otherWorkspace("TF_WORKSPACE is "+w, w, state)
	}
	if direct(command) {
		for _, arg := range command[1:] {
			if chdir, ok := strings.CutPrefix(arg, "-chdir="); ok && filepath.IsAbs(chdir) {
				dir = chdir
			} else if ok {
				dir = filepath.Join(dir, chdir)
			}
		}
	}
	configuration := readConfiguration(dir, name(command) == "tofu")
	if configuration == "" {
		return nil // not a directory of Terraform: the command may change to one
	}
	if err := checkBlock(dir, configuration); err != nil {
		return err
	}
	data := cmp.Or(lookup("TF_DATA_DIR"), usual)
	if !filepath.IsAbs(data) {
		data = filepath.Join(dir, data)
	}
	if w := selected(data); w != "" {
		return otherWorkspace(filepath.Join(data, "environment")+" selects the workspace "+w, w, state)
	}
	if way := filepath.Join(dir, usual); data != way {
		if err := checkOther(way, state); err != nil {
			return err
		}
	}
	return checkSaved(filepath.Join(data, "terraform.tfstate"), command, lookup, state)
}

// name returns which program a command runs: terraform, tofu, or a script that may call them.
func name(command []string) string { return strings.TrimSuffix(filepath.Base(command[0]), ".exe") }

// direct reports whether a command is Terraform or OpenTofu itself, and not a script that may call them.
func direct(command []string) bool { return name(command) == "terraform" || name(command) == "tofu" }

// readConfiguration returns the configuration files of a directory, one after the other, without their comments.
func readConfiguration(dir string, tofu bool) string {
	patterns := []string{"*.tf", "*.tf.json"}
	if tofu {
		patterns = append(patterns, "*.tofu", "*.tofu.json")
	}
	var all strings.Builder
	for _, p := range patterns {
		names, _ := filepath.Glob(filepath.Join(dir, p))
		for _, name := range names {
			text, _ := os.ReadFile(name)
			all.Write(comment.ReplaceAll(text, nil))
			all.WriteByte('\n')
		}
	}
	return all.String()
}

var (
	comment = regexp.MustCompile(`(?s:/\*.*?\*/)|(?m:(^|\s)(#|//).*$)`)
	// block matches a backend block in either form of the language, and what is in it; other a block of another kind.
	block = regexp.MustCompile(`\bbackend(?:\s+"http"\s*|"\s*:[\s\[]*\{\s*"http"\s*:[\s\[]*)\{([^}]*)\}`)
	other = regexp.MustCompile(`\bbackend(?:\s+"([^"]+)"\s*\{|"\s*:[\s\[]*\{\s*"([^"]+)")|\b(cloud)(?:\s*|"\s*:[\s\[]*)\{`)
	set   = regexp.MustCompile(`\b(` + strings.Join(given, "|") + `)"?\s*[=:]\s*([^\s,}]+)`)
)

// checkBlock judges the configuration by its text: which block counts among several, the client decides.
func checkBlock(dir, configuration string) error {
	// The only form of the block that has one line.
	const empty = `{"terraform":{"backend":{"http":{}}}}`
	blocks := block.FindAllStringSubmatch(configuration, -1)
	if len(blocks) == 0 {
		if m := other.FindStringSubmatch(configuration); m != nil {
			kind := cmp.Or(m[1], m[2], m[3])
			return fail.WithHint(fail.Usagef(`the configuration in %s has a backend %q block and none for "http", so its state would not be the blob`, dir, kind),
				"the block can stay: echo '"+empty+"' >azconc_override.tf.json; export TF_DATA_DIR=.terraform-azconc, which leaves .terraform to "+kind)
		}
		return fail.WithHint(fail.Usagef(`the configuration in %s has no backend "http" block, so its state would not be the blob`, dir),
			"echo '"+empty+"' >backend.tf.json")
	}
	for _, b := range blocks {
		for _, m := range set.FindAllStringSubmatch(b[1], -1) {
			if m[2] != "null" {
				return fail.WithHint(fail.Usagef(`a backend "http" block in %s sets %s, which azconc tf run must give`, dir, m[1]), "remove it from the block")
			}
		}
	}
	return nil
}

// usual is the name of the data directory where TF_DATA_DIR names none.
const usual = ".terraform"

// selected returns the workspace that is selected in a data directory, empty for the default one.
func selected(data string) string {
	text, _ := os.ReadFile(filepath.Join(data, "environment"))
	if w := strings.TrimSpace(string(text)); w != "default" {
		return w
	}
	return ""
}

// checkOther judges the data directory that is left to azurerm: if another workspace is selected there, the blob of the default one
// is not the state that azurerm uses in this directory.
func checkOther(data string, state ref.Blob) error {
	s := readSaved(filepath.Join(data, "terraform.tfstate"))
	w := selected(data)
	if w == "" || !s.is(state) {
		return nil
	}
	return fail.WithHint(fail.Usagef("%s selects the workspace %s of azurerm, whose state is another blob", filepath.Join(data, "environment"), w),
		fmt.Sprintf("give %venv:%s; for the default workspace, select that one with azurerm first", state, w))
}

// saved is the configuration of the backend that the last init has stored.
type saved struct {
	Type   string
	Config map[string]any
}

// is reports whether the backend is azurerm with this state.
func (s saved) is(state ref.Blob) bool {
	return s.Type == "azurerm" && s.Config["container_name"] == state.Container && s.Config["key"] == state.Blob
}

// readSaved returns a zero configuration if none is stored.
func readSaved(file string) saved {
	var s struct{ Backend saved }
	raw, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return saved{}
	}
	return s.Backend
}

// checkSaved judges the configuration of the backend that the last init has stored.
func checkSaved(file string, command []string, lookup func(string) string, state ref.Blob) error {
	switch s := readSaved(file); s.Type {
	case "http":
		again := slices.ContainsFunc(slices.Concat(command, strings.Fields(lookup("TF_CLI_ARGS_init"))), func(arg string) bool {
			return strings.TrimLeft(arg, "-") == "reconfigure"
		})
		for _, name := range given {
			if s.Config[name] != nil && !again {
				return fail.WithHint(fail.Usagef("%s holds %s of an earlier init, which beats the environment: the run would lock one state and use another", file, name),
					"init again under azconc tf run, with -reconfigure")
			}
		}
	case "azurerm":
		if s.is(state) {
			return fail.WithHint(fail.Usagef("%s says that the backend is azurerm, with this very blob: init would copy the state onto itself, and wait for its own lock", file),
				"set TF_DATA_DIR=.terraform-azconc, which leaves .terraform as it is for the way back")
		}
	}
	return nil
}

func otherWorkspace(why, w string, state ref.Blob) error {
	return fail.WithHint(fail.Usagef("%s, and an http backend has no workspaces", why),
		fmt.Sprintf("azurerm keeps the state of that workspace in %venv:%s: give that name, with the workspace default", state, w))
}
