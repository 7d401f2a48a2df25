package flags

import (
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/settings"
)

// metadataName is the form of a metadata name (REST: "Naming and referencing containers, blobs, and metadata").
var metadataName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Metadata adds the flag --metadata, which may be repeated.
func Metadata(set *pflag.FlagSet, to *map[string]string, usage string) {
	Pairs(set, to, "metadata", usage, func(pairs []string) (map[string]string, error) { return ParsePairs("--metadata", pairs) })
}

// Pairs adds a flag that takes name=value and may be repeated.
func Pairs(set *pflag.FlagSet, to *map[string]string, name, usage string, parse func(pairs []string) (map[string]string, error)) {
	set.Var(&pairsValue{to: to, parse: parse}, name, usage+"; may be repeated")
}

// pairsValue is a flag that collects name=value pairs.
type pairsValue struct {
	given []string
	to    *map[string]string
	parse func(pairs []string) (map[string]string, error)
}

func (p *pairsValue) String() string { return strings.Join(p.given, " ") }
func (p *pairsValue) Type() string   { return "stringArray" }

// Set leaves an empty text to CheckGiven, which explains it.
func (p *pairsValue) Set(text string) (err error) {
	if p.given = append(p.given, text); strings.TrimSpace(text) != "" {
		*p.to, err = p.parse(p.given)
	}
	return err
}

// ParsePairs reads repeated name=value flags.
func ParsePairs(flag string, pairs []string) (map[string]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	out := make(map[string]string, len(pairs))
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, fail.Usagef("%s %q is not name=value", flag, p)
		}
		if !metadataName.MatchString(name) {
			return nil, fail.WithHint(fail.Usagef("%s %q is not a name", flag, name), "a name has letters, digits and underscores, and does not begin with a digit")
		}
		name = strings.ToLower(name)
		if _, twice := out[name]; twice {
			return nil, fail.Usagef("%s %s is given twice", flag, name)
		}
		if strings.EqualFold(name, optimistic.LineageKey) || strings.EqualFold(name, optimistic.OperationsKey) || strings.EqualFold(name, settings.CreationKey) {
			return nil, fail.Usagef("%s %s: the name is reserved for azconc", flag, name)
		}
		if err := headerText(flag+" "+name, value); err != nil {
			return nil, err
		}
		out[name] = value
	}
	return out, nil
}
