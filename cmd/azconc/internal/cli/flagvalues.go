package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// emptyAllowed annotates a flag for which an empty value says something that leaving the flag out says, too.
const emptyAllowed = "azconc-empty-allowed"

// allowEmpty lets flags of cmd be given as an empty string. It is only for flags whose absence can do no harm: an empty
// condition, id or credential comes from a variable that is not set, and must not be taken for none.
func allowEmpty(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		if err := cmd.Flags().SetAnnotation(name, emptyAllowed, []string{"true"}); err != nil {
			panic(err) // the flag does not exist
		}
	}
}

// checkGiven refuses the flags that were given as an empty string, and empty arguments, before anything is sent. It
// covers every flag of every command; a flag is exempt only through allowEmpty.
func checkGiven(cmd *cobra.Command, args []string) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && isEmpty(f) && f.Annotations[emptyAllowed] == nil {
			err = withHint(usagef("--%s is empty", f.Name), fmt.Sprintf(
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
			return withHint(usagef("argument %d is empty", i+1), "is the variable set, and quoted?")
		}
	}
	return nil
}

func isEmpty(f *pflag.Flag) bool {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		values := list.GetSlice()
		for _, v := range values {
			if strings.TrimSpace(v) == "" {
				return true
			}
		}
		return len(values) == 0
	}
	return f.Value.Type() == "string" && strings.TrimSpace(f.Value.String()) == ""
}

// secondsWithoutUnit makes every duration flag of cmd and of its verbs take a bare number as seconds.
func secondsWithoutUnit(cmd *cobra.Command) {
	replace := func(f *pflag.Flag) {
		if _, done := f.Value.(*durationValue); f.Value.Type() != "duration" || done {
			return
		}
		f.Value = &durationValue{f.Value}
		if f.DefValue == "0s" {
			f.DefValue = "0" // the form for which pflag prints no default
		}
	}
	cmd.LocalFlags().VisitAll(replace)
	for _, verb := range cmd.Commands() {
		secondsWithoutUnit(verb)
	}
}

type durationValue struct{ pflag.Value }

func (d *durationValue) Set(s string) error { return d.Value.Set(withUnit(s)) }

// withUnit adds the unit to a duration that is a bare number.
func withUnit(s string) string {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s + "s"
	}
	return s
}

// parseDuration is time.ParseDuration, where a bare number is seconds.
func parseDuration(s string) (time.Duration, error) { return time.ParseDuration(withUnit(s)) }

const durationHint = "a duration looks like 30s, 5m or 1h30m; a bare number is seconds"

// flagError is the usage error of a command line that pflag refused.
func flagError(_ *cobra.Command, err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return &usageError{err: err}
	}
	f, value := invalid.GetFlag(), invalid.GetValue()
	if f.Value.Type() == "duration" {
		return withHint(usagef("--%s %q is not a duration", f.Name, value), durationHint)
	}
	if strings.HasPrefix(f.Value.Type(), "int") || strings.HasPrefix(f.Value.Type(), "uint") {
		return usagef("--%s %q is not a whole number", f.Name, value)
	}
	if f.Value.Type() == "bool" {
		return usagef("--%s %q is neither true nor false", f.Name, value)
	}
	return usagef("--%s %q: %v", f.Name, value, errors.Unwrap(invalid))
}
