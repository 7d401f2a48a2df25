package azaccount

import (
	"io"
	"os"
	"strings"
)

// longestSecret is more than any connection string has.
const longestSecret = 64 << 10

// secret is a value, and the flag or variable that gave it, or named the file with it.
type secret struct{ name, value string }

// secretOf returns the value of a flag or variable, or what the file holds that another one names, whose name has suffix. White space at
// the ends of a file is left out.
func secretOf(name, value, suffix, file string) (secret, error) {
	by := name + suffix
	switch {
	case file == "":
		return secret{name, value}, nil
	case value != "":
		return secret{}, hinted("give the one or the other", "%s and %s cannot both be given", name, by)
	}
	r, err := os.Open(file)
	if err != nil {
		return secret{}, invalid("%s: %v", by, err)
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(io.LimitReader(r, longestSecret+1))
	text := strings.TrimSpace(string(data))
	switch {
	case err != nil:
		return secret{}, invalid("%s: %v", by, err)
	case len(data) > longestSecret:
		return secret{}, invalid("%s: %s is longer than %d bytes, and holds no secret of an account", by, file, longestSecret)
	case text == "":
		return secret{}, invalid("%s: %s is empty", by, file)
	}
	return secret{by, text}, nil
}
