package tfdir

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Refusal says why a command would not use the state that it is given, and the way out.
type Refusal struct{ Text, Hint string }

func (r *Refusal) Error() string { return r.Text }

// given are the attributes of an http backend that must come from the environment.
var given = []string{"address", "lock_address", "unlock_address", "username", "password"}

// Check judges the directory in which a command works: dir, or the one of its -chdir. It returns a *Refusal if the command would
// not take its state from TF_HTTP_*, and nil if it does or if that cannot be known, since the directory has no configuration.
// container and key are those of the blob. lookup returns a variable of the environment.
func Check(dir string, command []string, lookup func(string) string, container, key string) error {
	if w := lookup("TF_WORKSPACE"); w != "" && w != "default" {
		return otherWorkspace("TF_WORKSPACE is "+w, w, container, key)
	}
	args := arguments(command)
	for _, arg := range slices.Concat(args, strings.Fields(lookup("TF_CLI_ARGS_init"))) {
		if storesAddress(arg) {
			return &Refusal{"-backend-config would store an address or a password in the working directory, which the next run would use",
				"omit it: azconc tf run gives them in the environment"}
		}
	}
	dir = Dir(dir, command)
	b, found, configured, err := find(dir, isTofu(command[0]))
	if err != nil || !configured {
		return nil // not a directory of Terraform: the command may change to one
	}
	// The only form of the block that has one line.
	const empty = `{"terraform":{"backend":{"http":{}}}}`
	switch {
	case !found:
		return &Refusal{"the configuration in " + dir + ` has no backend "http" block, so its state would not be the blob`,
			"echo '" + empty + "' >backend.tf.json"}
	case b.kind != "http":
		return &Refusal{fmt.Sprintf(`%s has a backend %q block, not "http", so its state would not be the blob`, b.file, b.kind),
			"the block can stay: echo '" + empty + "' >azconc_override.tf.json; export TF_DATA_DIR=.terraform-azconc, which leaves .terraform to " + b.kind}
	}
	for _, name := range b.sets {
		if slices.Contains(given, name) {
			return &Refusal{fmt.Sprintf(`%s sets %s in its backend "http" block, where azconc tf run must give it`, b.file, name), "remove it from the block"}
		}
	}
	data := cmp.Or(lookup("TF_DATA_DIR"), usual)
	if !filepath.IsAbs(data) {
		data = filepath.Join(dir, data)
	}
	if w := selected(data); w != "" {
		return otherWorkspace(filepath.Join(data, "environment")+" selects the workspace "+w, w, container, key)
	}
	if way := filepath.Join(dir, usual); data != way {
		if err := checkOther(way, container, key); err != nil {
			return err
		}
	}
	return checkSaved(filepath.Join(data, "terraform.tfstate"), args, lookup, container, key)
}

// Dir returns the directory in which a command works: dir, or the one of its -chdir.
func Dir(dir string, command []string) string {
	for _, arg := range arguments(command) {
		if chdir, ok := strings.CutPrefix(arg, "-chdir="); ok && filepath.IsAbs(chdir) {
			dir = chdir
		} else if ok {
			dir = filepath.Join(dir, chdir)
		}
	}
	return dir
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
func checkOther(data, container, key string) error {
	s, err := readSaved(filepath.Join(data, "terraform.tfstate"))
	w := selected(data)
	if err != nil || w == "" || s.Type != "azurerm" || s.Config["container_name"] != container || s.Config["key"] != key {
		return nil
	}
	return &Refusal{fmt.Sprintf("%s selects the workspace %s of azurerm, whose state is another blob", filepath.Join(data, "environment"), w),
		fmt.Sprintf("give %s/%senv:%s; for the default workspace, select that one with azurerm first", container, key, w)}
}

// saved is the configuration of the backend that the last init has stored.
type saved struct {
	Type   string
	Config map[string]any
}

func readSaved(file string) (saved, error) {
	var s struct{ Backend saved }
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	return s.Backend, err
}

// checkSaved judges the configuration of the backend that the last init has stored.
func checkSaved(file string, args []string, lookup func(string) string, container, key string) error {
	s, err := readSaved(file)
	if err != nil {
		return nil
	}
	switch config := s.Config; s.Type {
	case "http":
		again := slices.Concat(args, strings.Fields(lookup("TF_CLI_ARGS_init")))
		for _, name := range given {
			if config[name] != nil && !slices.ContainsFunc(again, func(arg string) bool { return strings.TrimLeft(arg, "-") == "reconfigure" }) {
				return &Refusal{fmt.Sprintf("%s holds %s of an earlier init, which beats the environment: the run would lock one state and use another", file, name),
					"init again under azconc tf run, with -reconfigure"}
			}
		}
	case "azurerm":
		if config["container_name"] == container && config["key"] == key {
			return &Refusal{file + " says that the backend is azurerm, with this very blob: init would copy the state onto itself, and wait for its own lock",
				"set TF_DATA_DIR=.terraform-azconc, which leaves .terraform as it is for the way back"}
		}
	}
	return nil
}

func otherWorkspace(why, w, container, key string) error {
	return &Refusal{why + ", and an http backend has no workspaces",
		fmt.Sprintf("azurerm keeps the state of that workspace in %s/%senv:%s: give that name, with the workspace default", container, key, w)}
}

// Direct reports whether a command is Terraform or OpenTofu itself, and not a script that may call them.
func Direct(command []string) bool {
	name := strings.TrimSuffix(filepath.Base(command[0]), ".exe")
	return name == "terraform" || isTofu(name)
}

// arguments returns the arguments of a command that is Terraform or OpenTofu itself.
func arguments(command []string) []string {
	if Direct(command) {
		return command[1:]
	}
	return nil
}

func isTofu(name string) bool { return strings.TrimSuffix(filepath.Base(name), ".exe") == "tofu" }

// storesAddress reports whether an argument of init makes it store what azconc gives.
func storesAddress(arg string) bool {
	name, ok := strings.CutPrefix(strings.TrimLeft(arg, "-"), "backend-config=")
	name, _, sets := strings.Cut(name, "=")
	return ok && sets && slices.Contains(given, strings.TrimSpace(strings.Trim(name, `"'`)))
}
