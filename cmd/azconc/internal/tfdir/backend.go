package tfdir

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// backend is a backend or cloud block.
type backend struct {
	file string
	kind string   // such as http; cloud for a cloud block
	sets []string // attributes that are not null
}

// find returns the backend block that counts in a directory: that of the last override file, which replaces any other. configured
// is false if the directory has no configuration at all.
func find(dir string, tofu bool) (b backend, found, configured bool, err error) {
	names, err := configuration(dir, tofu)
	for _, name := range names {
		src, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return b, false, true, err
		}
		blocks := inNative(string(src))
		if strings.HasSuffix(name, ".json") {
			blocks = inJSON(src)
		}
		for _, x := range blocks {
			b, found = x, true
			b.file = name
		}
	}
	return b, found, len(names) > 0, err
}

// configuration lists the configuration files of a directory: override files last, each kind in the order of its names. OpenTofu
// reads x.tofu in place of x.tf.
func configuration(dir string, tofu bool) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var overrides []string
	for _, e := range entries {
		name := e.Name()
		base, suffix := cutSuffix(name, tofu)
		switch {
		case suffix == "" || e.IsDir() || strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~"):
		case tofu && strings.HasPrefix(suffix, ".tf") && exists(filepath.Join(dir, base+strings.Replace(suffix, ".tf", ".tofu", 1))):
		case base == "override" || strings.HasSuffix(base, "_override"):
			overrides = append(overrides, name)
		default:
			names = append(names, name)
		}
	}
	return append(names, overrides...), nil
}

func cutSuffix(name string, tofu bool) (base, suffix string) {
	suffixes := []string{".tf", ".tf.json"}
	if tofu {
		suffixes = append(suffixes, ".tofu", ".tofu.json")
	}
	for _, s := range suffixes {
		if base, ok := strings.CutSuffix(name, s); ok {
			return base, s
		}
	}
	return name, ""
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// inNative finds the blocks in a file in Terraform's own language: terraform { backend "kind" { attribute = value } }.
func inNative(src string) (out []backend) {
	all, depth := tokens(src), 0
	at := func(i int) token {
		if i < len(all) {
			return all[i]
		}
		return token{}
	}
	settings, current := false, -1 // whether in a terraform block, and which block in it
	for i, t := range all {
		switch {
		case t.kind == '{':
			depth++
		case t.kind == '}':
			depth--
			if depth == 1 {
				current = -1
			}
			settings = settings && depth > 0
		case depth == 0 && t.kind == 'i' && at(i+1).kind == '{':
			settings = t.text == "terraform"
		case settings && depth == 1 && t == token{'i', "cloud"} && at(i+1).kind == '{':
			out = append(out, backend{kind: "cloud"})
			current = len(out) - 1
		case settings && depth == 1 && t == token{'i', "backend"} && at(i+2).kind == '{':
			out = append(out, backend{kind: at(i + 1).text})
			current = len(out) - 1
		case current >= 0 && depth == 2 && t.kind == 'i' && at(i+1).kind == '=' && at(i+2) != token{'i', "null"}:
			out[current].sets = append(out[current].sets, t.text)
		}
	}
	return out
}

// inJSON finds the blocks in a file in JSON, where a block is an object or a list of objects.
func inJSON(src []byte) (out []backend) {
	var root map[string]json.RawMessage
	if json.Unmarshal(src, &root) != nil {
		return nil
	}
	for _, settings := range objects(root["terraform"]) {
		for range objects(settings["cloud"]) {
			out = append(out, backend{kind: "cloud"})
		}
		for _, kinds := range objects(settings["backend"]) {
			for kind, body := range kinds {
				b := backend{kind: kind}
				for _, attributes := range objects(body) {
					for name, value := range attributes {
						if string(value) != "null" {
							b.sets = append(b.sets, name)
						}
					}
				}
				slices.Sort(b.sets)
				out = append(out, b)
			}
		}
	}
	return out
}

func objects(raw json.RawMessage) (out []map[string]json.RawMessage) {
	var one map[string]json.RawMessage
	if json.Unmarshal(raw, &one) == nil && one != nil {
		return []map[string]json.RawMessage{one}
	}
	_ = json.Unmarshal(raw, &out)
	return out
}
