package azaccount

import "strings"

// Flags are settings that take precedence over the environment. Errors name them as azconc's flags: --account-name,
// --sas-token and so on.
type Flags struct {
	ConnectionString string
	AccountName      string
	AccountKey       string
	SASToken         string

	// ConnectionStringFile, AccountKeyFile and SASTokenFile name files that hold the secret, so that it is neither on the
	// command line nor in the environment.
	ConnectionStringFile string
	AccountKeyFile       string
	SASTokenFile         string

	AuthMode      string // "login", "key" or ""
	BlobEndpoint  string
	TableEndpoint string
	QueueEndpoint string
	FileEndpoint  string
}

// Resolve combines flags with the environment, which getenv reads: os.Getenv, or a function like it. A flag takes
// precedence over the environment. Within the environment a connection string takes precedence over the other
// variables, as for the Azure CLI. Two credentials of the same rank are refused. An account may have no endpoint at
// all: the methods that make clients refuse that.
//
// Errors are of type [*Error].
func Resolve(flags Flags, getenv func(string) string) (*Account, error) {
	s := &settings{Flags: flags, named: map[string]string{}}
	if err := s.readFiles(); err != nil {
		return nil, err
	}
	if err := s.contradictions(); err != nil {
		return nil, err
	}
	var err error
	a := &Account{endpoint: map[Service]string{}}
	text := s.ConnectionString
	if text == "" && s.AccountName == "" {
		if text, err = s.variable(getenv, "AZURE_STORAGE_CONNECTION_STRING"); err != nil {
			return nil, err
		}
	}
	var key, sas string
	if text != "" {
		parsed, err := parseConnectionString(text)
		if err != nil {
			return nil, err
		}
		a.name, a.endpoint, key, sas = parsed.name, parsed.endpoint, parsed.key, parsed.sas
	} else {
		a.name = s.AccountName
		if a.name == "" {
			a.name = getenv("AZURE_STORAGE_ACCOUNT")
		}
		if s.AccountKey == "" && s.SASToken == "" && s.AuthMode != "login" {
			if key, err = s.variable(getenv, "AZURE_STORAGE_KEY"); err != nil {
				return nil, err
			}
			if sas, err = s.variable(getenv, "AZURE_STORAGE_SAS_TOKEN"); err != nil {
				return nil, err
			}
		}
		if a.name != "" {
			if err := validAccount("the account name", a.name); err != nil {
				return nil, err
			}
			for _, service := range services {
				a.endpoint[service] = "https://" + a.name + "." + string(service) + ".core.windows.net"
			}
		}
	}
	if err := a.endpoints(s); err != nil {
		return nil, err
	}
	if err := a.authorise(s, getenv, key, sas); err != nil {
		return nil, err
	}
	return a, nil
}

func (f *settings) contradictions() error {
	type flag struct{ name, value string }
	key, sas := f.nameOf("--account-key"), f.nameOf("--sas-token")
	credentials := []flag{{key, f.AccountKey}, {sas, f.SASToken}}
	if f.ConnectionString != "" {
		for _, o := range append(credentials, flag{"--account-name", f.AccountName}) {
			if o.value != "" {
				return hinted("the connection string names the account and its credential: drop "+o.name, "%s and %s cannot both be given", f.nameOf("--connection-string"), o.name)
			}
		}
	}
	if f.AccountKey != "" && f.SASToken != "" {
		return hinted("give the one to authorise requests with", "%s and %s cannot both be given", key, sas)
	}
	switch f.AuthMode {
	case "", "key":
	case "login":
		for _, o := range credentials {
			if o.value != "" {
				return hinted("drop "+o.name+" to sign in, or --auth-mode to use it", "--auth-mode login and %s cannot both be given", o.name)
			}
		}
	default:
		return invalid("--auth-mode %q is neither login nor key", f.AuthMode)
	}
	if err := validKey(key, f.AccountKey); err != nil {
		return err
	}
	return validSAS(sas, strings.TrimPrefix(f.SASToken, "?"))
}

func (a *Account) endpoints(flags *settings) error {
	for s, given := range map[Service]string{
		Blob: flags.BlobEndpoint, Table: flags.TableEndpoint, Queue: flags.QueueEndpoint, File: flags.FileEndpoint,
	} {
		if given == "" {
			continue
		}
		endpoint, err := validEndpoint("--"+string(s)+"-endpoint", given)
		if err != nil {
			return err
		}
		a.endpoint[s] = endpoint
		if a.name == "" {
			a.name = nameIn(endpoint)
		}
	}
	return nil
}

func (a *Account) authorise(flags *settings, getenv func(string) string, key, sas string) error {
	switch {
	case flags.AuthMode == "login":
		a.login = &login{getenv: getenv}
		return nil
	case flags.AccountKey != "":
		a.key = flags.AccountKey
	case flags.SASToken != "":
		a.sas = strings.TrimPrefix(flags.SASToken, "?")
	case flags.ConnectionString == "" && flags.AuthMode == "" && getenv("AZURE_STORAGE_AUTH_MODE") == "login":
		a.login = &login{getenv: getenv}
		return nil
	case key != "" && sas != "":
		return hinted("unset one of them, or give --account-key, --sas-token or --auth-mode login", "%s and %s are both set",
			flags.nameOf("AZURE_STORAGE_KEY"), flags.nameOf("AZURE_STORAGE_SAS_TOKEN"))
	case key != "":
		if err := validKey(flags.nameOf("AZURE_STORAGE_KEY"), key); err != nil {
			return err
		}
		a.key = key
	case sas != "":
		a.sas = strings.TrimPrefix(sas, "?")
		if err := validSAS(flags.nameOf("AZURE_STORAGE_SAS_TOKEN"), a.sas); err != nil {
			return err
		}
	default:
		mode := flags.AuthMode
		if mode == "" {
			mode = getenv("AZURE_STORAGE_AUTH_MODE")
		}
		switch mode {
		case "", "login":
		case "key":
			return hinted("give --account-key or --sas-token, or see azconc help environment", "auth mode key, but neither a key nor a SAS is given")
		default:
			return invalid("AZURE_STORAGE_AUTH_MODE %q is neither login nor key", mode)
		}
		a.login = &login{getenv: getenv}
	}
	if a.key != "" && a.name == "" {
		return hinted("give --account-name", "an account key is given without an account")
	}
	return nil
}
