package cli

import "strings"

// Env is an environment in the form of os.Environ. The last of two equal names counts, as it does for os/exec.
type Env []string

// Get returns the value of name, "" when it is not set.
func (e Env) Get(name string) string {
	for i := len(e) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(e[i], "="); ok && k == name {
			return v
		}
	}
	return ""
}
