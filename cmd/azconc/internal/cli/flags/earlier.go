package flags

import "github.com/spf13/pflag"

// Earlier lets a flag of set be given under the name that it had before. Neither the help nor the completion shows that name, and
// errors use the present one.
func Earlier(set *pflag.FlagSet, before, now string) {
	next := set.GetNormalizeFunc()
	set.SetNormalizeFunc(func(set *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == before {
			name = now
		}
		return next(set, name)
	})
}
