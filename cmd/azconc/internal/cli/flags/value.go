package flags

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// value is a flag that converts its text, or refuses it with a usage error, when it is given.
type value[T any] struct {
	kind  string // as pflag names the type
	text  string
	to    *T
	parse func(text string) (T, error)
	given func()       // called when it has been given
	check func() error // called by Check when all flags are parsed
}

func (v *value[T]) String() string { return v.text }
func (v *value[T]) Type() string   { return v.kind }
func (v *value[T]) done() error    { return v.check() }

func (v *value[T]) whenDone(check func() error) { v.check = check }

// Set leaves an empty text to CheckGiven, which explains it.
func (v *value[T]) Set(text string) error {
	if v.kind == "string" && strings.TrimSpace(text) == "" {
		v.text = text
		return nil
	}
	parsed, err := v.parse(text)
	switch {
	case err == nil && v.kind == "string":
		*v.to, v.text = parsed, text
	case err == nil:
		*v.to, v.text = parsed, fmt.Sprint(parsed)
		v.given()
	}
	return err
}

// add adds a flag whose default is *to.
func add[T any](set *pflag.FlagSet, to *T, name, short, kind, usage string, parse func(text string) (T, error)) *value[T] {
	v := &value[T]{kind: kind, to: to, parse: parse, given: func() {}, check: func() error { return nil }}
	if kind != "string" {
		v.text = fmt.Sprint(*to)
	}
	set.VarP(v, name, short, usage)
	return v
}

// Text adds a flag whose text parse converts, or refuses with a usage error.
func Text[T any](set *pflag.FlagSet, to *T, name, usage string, parse func(text string) (T, error)) *value[T] {
	return add(set, to, name, "", "string", usage, parse)
}

// ETag adds a flag that takes an ETag or "*".
func ETag(set *pflag.FlagSet, to *azcore.ETag, name, usage string) {
	Text(set, to, name, usage, func(text string) (azcore.ETag, error) { return ParseETag("--"+name, text) })
}

// Time adds a flag that takes a time.
func Time(set *pflag.FlagSet, to *time.Time, name, usage string) *value[time.Time] {
	return Text(set, to, name, usage, func(text string) (time.Time, error) { return ParseTime("--"+name, text) })
}

// LeaseID adds the flag --lease-id.
func LeaseID(set *pflag.FlagSet, to *string, usage string) *value[string] {
	return Text(set, to, "lease-id", usage, ParseLeaseID)
}

// Int adds a flag that takes a whole number of at least least, which is 0 or 1.
func Int[T int | int64](set *pflag.FlagSet, to *T, name string, least T, usage string) *value[T] {
	return add(set, to, name, "", fmt.Sprintf("%T", least), usage, func(text string) (T, error) {
		n, err := strconv.ParseInt(text, 0, strconv.IntSize)
		if err == nil && T(n) < least {
			err = tooSmall(name, n, least == 0)
		}
		return T(n), err
	})
}

// Between adds a flag that takes a whole number from 1 to most.
func Between(set *pflag.FlagSet, to *int, name string, most int, usage string) {
	add(set, to, name, "", "int", usage, func(text string) (int, error) {
		n, err := strconv.ParseInt(text, 0, strconv.IntSize)
		if err == nil && (n < 1 || int(n) > most) {
			err = fail.Usagef("--%s %d is not between 1 and %d", name, n, most)
		}
		return int(n), err
	})
}

// Size adds a flag that takes a positive number of bytes, as 1048576 or 1MiB.
func Size(set *pflag.FlagSet, to *int64, name, usage string) {
	add(set, to, name, "", "int64", usage, func(text string) (int64, error) {
		number, shift := text, 0
		for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
			if before, ok := strings.CutSuffix(text, unit); ok {
				number, shift = before, 10*(i+1)
			}
		}
		n, err := strconv.ParseInt(number, 0, 64)
		switch {
		case err != nil || n > math.MaxInt64>>shift:
			return 0, fail.Usagef("--%s %q is not a number of bytes, such as 1048576 or 1MiB", name, text)
		case n < 1:
			return 0, tooSmall(name, text, false)
		}
		return n << shift, nil
	})
}

// Duration adds a flag that takes a duration, which is positive unless zero is allowed.
func Duration(set *pflag.FlagSet, to *time.Duration, name string, zero bool, usage string) {
	AnyDuration(set, to, name, "", usage, func(d time.Duration) error {
		if d < 0 || d == 0 && !zero {
			return tooSmall(name, d, zero)
		}
		return nil
	})
}

// Prefix adds the flag --prefix of a list.
func Prefix(set *pflag.FlagSet, to *string) {
	set.StringVar(to, "prefix", "", "only names that begin with this `text`")
	AllowEmpty(set, "prefix")
}

// Within adds a flag that takes a duration of at least least, and of whole seconds up to most if that is not 0. Its default is *to.
func Within(set *pflag.FlagSet, to *time.Duration, name string, least, most time.Duration, usage string) {
	AnyDuration(set, to, name, "", usage, func(d time.Duration) error {
		switch {
		case most == 0 && d < least:
			return fail.Usagef("--%s %s is less than %s", name, show.Duration(d), show.Duration(least))
		case most != 0 && (d < least || d > most || d%time.Second != 0):
			return fail.Usagef("--%s %s is not between %s and %s, in whole seconds", name, show.Duration(d), show.Duration(least), show.Duration(most))
		}
		return nil
	})
}

// AnyDuration adds a flag that takes what ParseDuration does, if check accepts it. Its default is *to.
func AnyDuration(set *pflag.FlagSet, to *time.Duration, name, short, usage string, check func(time.Duration) error) {
	add(set, to, name, short, "duration", usage, func(text string) (time.Duration, error) {
		d, err := ParseDuration(text)
		if err == nil {
			err = check(d)
		}
		return d, err
	})
	f := set.Lookup(name)
	if f.DefValue = show.Duration(*to); *to == 0 {
		f.DefValue = "0" // the form for which pflag prints no default
	}
}

func tooSmall(name string, value any, zero bool) error {
	if zero {
		return fail.Usagef("--%s %v is negative", name, value)
	}
	return fail.Usagef("--%s %v is not positive", name, value)
}

// OneOf adds a flag that takes one of several words, the first of which is the default.
func OneOf(set *pflag.FlagSet, to *string, name, usage string, words ...string) {
	*to = words[0]
	last := len(words) - 1
	v := Text(set, to, name, usage+": {"+strings.Join(words, " | ")+"}", func(text string) (string, error) {
		if slices.Contains(words, text) {
			return text, nil
		}
		return "", fail.Usagef("--%s %q is neither %s nor %s", name, text, strings.Join(words[:last], ", "), words[last])
	})
	v.text, set.Lookup(name).DefValue = words[0], words[0]
}

// required annotates a flag that has to be given, with the hint for its absence.
const required = "azconc-required"

// File adds the flag --file of a verb that needs content.
func File(set *pflag.FlagSet, to *string, usage string) {
	set.StringVarP(to, "file", "f", "", usage)
	Required(set, "file", "--file - reads stdin")
}

// Required makes a flag one that has to be given. The hint may be empty.
func Required(set *pflag.FlagSet, name, hint string) { annotate(set, name, required, hint) }

// Check checks the flags of a verb after all of them were parsed: that none is missing, and that they can be combined.
func Check(set *pflag.FlagSet) (err error) {
	set.VisitAll(func(f *pflag.Flag) {
		hint, needed := f.Annotations[required]
		v, checks := f.Value.(interface{ done() error })
		switch {
		case err != nil:
		case needed && (!f.Changed || f.Value.String() == ""):
			err = fail.WithHint(fail.Usagef("--%s is missing", f.Name), hint[0])
		case checks:
			err = v.done()
		}
	})
	return err
}

// ParseDuration is time.ParseDuration, where whole days of 24 hours may come first, as in 7d or 1d12h, and a bare number is seconds.
func ParseDuration(s string) (time.Duration, error) {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return time.ParseDuration(s + "s")
	}
	number, rest, inDays := strings.Cut(s, "d")
	if !inDays {
		return time.ParseDuration(s)
	}
	days, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return 0, errNoDuration
	}
	var after time.Duration
	if rest != "" {
		after, err = time.ParseDuration(rest)
	}
	if err != nil || after < 0 {
		return 0, errNoDuration
	}
	return time.Duration(days)*show.Day + after, nil
}

var errNoDuration = errors.New("it is not a duration")

const durationHint = "a duration looks like 30s, 5m, 1h30m or 7d; a bare number is seconds"
