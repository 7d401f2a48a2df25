package azaccount

import (
	"bytes"
	"io"
	"os"
	"strings"
)

// longestSecret is more than any connection string has.
const longestSecret = 64 << 10

// settings are flags, with the secrets from files in their place.
type settings struct {
	Flags

	named map[string]string // by the flag or variable whose value is from a file: the one that names the file
}

// readFiles sets the flags that files are named for to what the files hold.
func (f *settings) readFiles() error {
	for _, s := range []struct {
		name string
		to   *string
		file string
	}{
		{"--connection-string", &f.ConnectionString, f.ConnectionStringFile},
		{"--account-key", &f.AccountKey, f.AccountKeyFile},
		{"--sas-token", &f.SASToken, f.SASTokenFile},
	} {
		if err := f.readFile(s.name, s.name+"-file", s.to, s.file); err != nil {
			return err
		}
	}
	return nil
}

// variable returns a secret of the environment: the value of a variable, or what the file holds that another variable names.
func (f *settings) variable(getenv func(string) string, name string) (value string, err error) {
	value = getenv(name)
	err = f.readFile(name, name+"_FILE", &value, getenv(name+"_FILE"))
	return value, err
}

// readFile sets a setting to what the file holds that another setting, setting, names. White space at its ends is left out.
func (f *settings) readFile(name, setting string, to *string, file string) error {
	switch {
	case file == "":
		return nil
	case *to != "":
		return hinted("give the one or the other", "%s and %s cannot both be given", name, setting)
	}
	r, err := os.Open(file)
	if err != nil {
		return invalid("%s: %v", setting, err)
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(io.LimitReader(r, longestSecret+1))
	switch {
	case err != nil:
		return invalid("%s: %v", setting, err)
	case len(data) > longestSecret:
		return invalid("%s: %s is longer than %d bytes, and holds no secret of an account", setting, file, longestSecret)
	case len(bytes.TrimSpace(data)) == 0:
		return invalid("%s: %s is empty", setting, file)
	}
	*to, f.named[name] = strings.TrimSpace(string(data)), setting
	return nil
}

// nameOf returns the flag or variable that gave the value of name.
func (f *settings) nameOf(name string) string {
	if setting, ok := f.named[name]; ok {
		return setting
	}
	return name
}
