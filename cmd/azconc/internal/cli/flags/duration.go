package flags

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// AsPeopleWriteThem makes every duration flag of cmd and of its verbs take days, and a bare number as seconds, and its default
// appear as people write it.
func AsPeopleWriteThem(cmd *cobra.Command) {
	replace := func(f *pflag.Flag) {
		if _, done := f.Value.(*durationValue); f.Value.Type() != "duration" || done {
			return
		}
		if d, err := time.ParseDuration(f.DefValue); err == nil {
			f.DefValue = show.Duration(d)
		}
		f.Value = &durationValue{f.Value}
		if f.DefValue == "0s" {
			f.DefValue = "0" // the form for which pflag prints no default
		}
	}
	cmd.LocalFlags().VisitAll(replace)
	for _, verb := range cmd.Commands() {
		AsPeopleWriteThem(verb)
	}
}

type durationValue struct{ pflag.Value }

func (d *durationValue) Set(s string) error {
	parsed, err := ParseDuration(s)
	if err != nil {
		return err
	}
	return d.Value.Set(parsed.String())
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
