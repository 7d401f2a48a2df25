// Package flags has the flags that several commands share, and the rules that hold for every flag.
package flags

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

// EmptyAllowed annotates a flag for which an empty value says something that leaving the flag out says, too.
const EmptyAllowed = "azconc-empty-allowed"

// AllowEmpty lets flags of cmd be given as an empty string. It is only for flags whose absence can do no harm: an empty
// condition, id or credential comes from a variable that is not set, and must not be taken for none.
func AllowEmpty(set *pflag.FlagSet, names ...string) {
	for _, name := range names {
		annotate(set, name, EmptyAllowed, "true")
	}
}

// Listing defines the flags of a list of nouns: --prefix and --max.
func Listing(set *pflag.FlagSet, prefix *string, most *int, nouns string) {
	set.StringVar(prefix, "prefix", "", "only names that begin with this `text`")
	AllowEmpty(set, "prefix")
	Int(set, most, "max", 0, "stop after `n` "+nouns+"; 0 is all")
}

func annotate(set *pflag.FlagSet, name, key, value string) {
	if err := set.SetAnnotation(name, key, []string{value}); err != nil {
		panic(err) // the flag does not exist
	}
}

// CheckGiven refuses the flags that were given as an empty string, and empty arguments, before anything is sent. It
// covers every flag of every command; a flag is exempt only through allowEmpty.
func CheckGiven(cmd *cobra.Command, args []string) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && isEmpty(f) && f.Annotations[EmptyAllowed] == nil {
			err = fail.WithHint(fail.Usagef("--%s is empty", f.Name), fmt.Sprintf(
				`is the variable set, and quoted? to run without --%s, omit the flag, as in ${VAR:+--%s "$VAR"}`, f.Name, f.Name))
		}
	})
	if err != nil {
		return err
	}
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		args = args[:dash] // what follows are the arguments of another program
	}
	for i, arg := range args {
		if strings.TrimSpace(arg) == "" {
			return fail.WithHint(fail.Usagef("argument %d is empty", i+1), "is the variable set, and quoted?")
		}
	}
	return nil
}

func isEmpty(f *pflag.Flag) bool {
	values, list := valuesOf(f)
	if list {
		for _, v := range values {
			if strings.TrimSpace(v) == "" {
				return true
			}
		}
		return len(values) == 0
	}
	return f.Value.Type() == "string" && strings.TrimSpace(f.Value.String()) == ""
}

func valuesOf(f *pflag.Flag) (values []string, list bool) {
	switch v := f.Value.(type) {
	case pflag.SliceValue:
		return v.GetSlice(), true
	case *pairsValue:
		return v.given, true
	}
	return nil, false
}

// FlagError is the usage error of a command line that pflag refused.
func FlagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		if name := nearest(cmd, unknown.GetSpecifiedName()); name != "" {
			return fail.WithHint(&fail.UsageError{Err: err}, "did you mean --"+name+"?")
		}
	}
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return &fail.UsageError{Err: err}
	}
	f, value := invalid.GetFlag(), invalid.GetValue()
	if cause := errors.Unwrap(invalid); fail.Judge(cause).Code == fail.ExitUsage {
		return cause
	}
	if f.Value.Type() == "duration" {
		return fail.WithHint(fail.Usagef("--%s %q is not a duration", f.Name, value), durationHint)
	}
	if strings.HasPrefix(f.Value.Type(), "int") || strings.HasPrefix(f.Value.Type(), "uint") {
		return fail.Usagef("--%s %q is not a whole number", f.Name, value)
	}
	if f.Value.Type() == "bool" {
		return fail.Usagef("--%s %q is neither true nor false", f.Name, value)
	}
	return fail.Usagef("--%s %q: %v", f.Name, value, errors.Unwrap(invalid))
}

// nearest returns the flag of cmd whose name the user may have meant. It compares names as cobra compares those of commands.
func nearest(cmd *cobra.Command, name string) string {
	names := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	if found := names.SuggestionsFor(name); len(found) > 0 {
		return found[0]
	}
	return ""
}

// words annotates a flag with the words that its value may have, with commas between them.
const words = "azconc-words"

// Words declares the words that a flag's value may have, for completion.
func Words(set *pflag.FlagSet, name string, all []string) {
	if err := set.SetAnnotation(name, words, all); err != nil {
		panic(err) // the flag does not exist
	}
}

// WordsOf returns the words that Words declared.
func WordsOf(f *pflag.Flag) []string { return f.Annotations[words] }
