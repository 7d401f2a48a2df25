package azaccount

import (
	"cmp"
	"strings"
)

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

// Resolve combines flags with the environment, which getenv reads: os.Getenv, or a function like it. An account may have no
// endpoint at all: the methods that make clients refuse that.
//
// Errors are of type [*Error].
func Resolve(flags Flags, getenv func(string) string) (*Account, error) {
	text, err1 := secretOf("--connection-string", flags.ConnectionString, "-file", flags.ConnectionStringFile)
	key, err2 := secretOf("--account-key", flags.AccountKey, "-file", flags.AccountKeyFile)
	sas, err3 := secretOf("--sas-token", flags.SASToken, "-file", flags.SASTokenFile)
	if err := cmp.Or(err1, err2, err3); err != nil {
		return nil, err
	}
	if err := contradictions(flags, text, key, sas); err != nil {
		return nil, err
	}
	// The environment does not decide how to authorise if a flag does, nor which account.
	chosen := key.value != "" || sas.value != "" || flags.AuthMode == "login"
	byFlag := chosen || text.value != "" || flags.AuthMode != ""
	variable := func(name string) (secret, error) { return secretOf(name, getenv(name), "_FILE", getenv(name+"_FILE")) }
	if text.value == "" && flags.AccountName == "" {
		if text, err1 = variable("AZURE_STORAGE_CONNECTION_STRING"); err1 != nil {
			return nil, err1
		}
	}
	a := &Account{name: cmp.Or(flags.AccountName, getenv("AZURE_STORAGE_ACCOUNT")), endpoint: map[Service]string{}}
	if text.value != "" {
		parsed, err := parseConnectionString(text.value)
		if err != nil {
			return nil, err
		}
		a.name, a.endpoint = parsed.name, parsed.endpoint
		if !chosen {
			key.value, sas.value = parsed.key, parsed.sas
		}
	} else {
		if !chosen {
			key, err1 = variable("AZURE_STORAGE_KEY")
			sas, err2 = variable("AZURE_STORAGE_SAS_TOKEN")
			if err := cmp.Or(err1, err2); err != nil {
				return nil, err
			}
		}
		if err := a.defaultEndpoints(); err != nil {
			return nil, err
		}
	}
	if err := a.endpoints(flags); err != nil {
		return nil, err
	}
	mode := cmp.Or(flags.AuthMode, getenv("AZURE_STORAGE_AUTH_MODE"))
	if mode == "login" && (!byFlag || flags.AuthMode == mode) {
		key.value, sas.value = "", ""
	}
	if err := a.authorise(mode, getenv, key, sas); err != nil {
		return nil, err
	}
	return a, nil
}

// contradictions refuses flags that exclude each other.
func contradictions(flags Flags, text, key, sas secret) error {
	credentials := []secret{key, sas}
	if text.value != "" {
		for _, o := range append(credentials, secret{"--account-name", flags.AccountName}) {
			if o.value != "" {
				return hinted("the connection string names the account and its credential: drop "+o.name,
					"%s and %s cannot both be given", text.name, o.name)
			}
		}
	}
	if key.value != "" && sas.value != "" {
		return hinted("give the one to authorise requests with", "%s and %s cannot both be given", key.name, sas.name)
	}
	switch flags.AuthMode {
	case "", "key":
	case "login":
		for _, o := range credentials {
			if o.value != "" {
				return hinted("drop "+o.name+" to sign in, or --auth-mode to use it", "--auth-mode login and %s cannot both be given", o.name)
			}
		}
	default:
		return invalid("--auth-mode %q is neither login nor key", flags.AuthMode)
	}
	return nil
}

// defaultEndpoints sets the endpoints of an account in the public cloud, if it has a name.
func (a *Account) defaultEndpoints() error {
	if a.name == "" {
		return nil
	}
	for _, s := range services {
		a.endpoint[s] = "https://" + a.name + "." + string(s) + ".core.windows.net"
	}
	return validAccount("the account name", a.name)
}

func (a *Account) endpoints(flags Flags) error {
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

// authorise sets the credential: the key, the SAS, or Entra ID.
func (a *Account) authorise(mode string, getenv func(string) string, key, sas secret) error {
	a.key, a.sas = key.value, strings.TrimPrefix(sas.value, "?")
	switch {
	case a.key != "" && a.sas != "":
		return hinted("unset one of them, or give --account-key, --sas-token or --auth-mode login", "%s and %s are both set", key.name, sas.name)
	case a.key != "":
		if err := validKey(key.name, a.key); err != nil || a.name != "" {
			return err
		}
		return hinted("give --account-name", "an account key is given without an account")
	case a.sas != "":
		return validSAS(sas.name, a.sas)
	case mode == "key":
		return hinted("give --account-key or --sas-token, or see azconc help environment", "auth mode key, but neither a key nor a SAS is given")
	case mode != "" && mode != "login":
		return invalid("AZURE_STORAGE_AUTH_MODE %q is neither login nor key", mode)
	}
	a.login = &login{getenv: getenv}
	return nil
}
