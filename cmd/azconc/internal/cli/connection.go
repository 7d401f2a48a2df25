package cli

import (
	"strings"

	"github.com/spf13/pflag"
)

// connectionFlags have the names and the environment variables of the Azure CLI.
type connectionFlags struct {
	ConnectionString string
	AccountName      string
	AccountKey       string
	SASToken         string
	AuthMode         string
	BlobEndpoint     string
	TableEndpoint    string
	QueueEndpoint    string
	FileEndpoint     string
}

func (c *connectionFlags) add(p *pflag.FlagSet) {
	p.StringVar(&c.ConnectionString, "connection-string", "", "connection `string` of the account; UseDevelopmentStorage=true is Azurite")
	p.StringVar(&c.AccountName, "account-name", "", "`name` of the account")
	p.StringVar(&c.AccountKey, "account-key", "", "`key` of the account")
	p.StringVar(&c.SASToken, "sas-token", "", "shared access signature `token`")
	p.StringVar(&c.AuthMode, "auth-mode", "", "{login | key}: Entra ID, or the given key or SAS")
	p.StringVar(&c.BlobEndpoint, "blob-endpoint", "", "`URL` of the Blob service, if not the default")
	p.StringVar(&c.TableEndpoint, "table-endpoint", "", "`URL` of the Table service")
	p.StringVar(&c.QueueEndpoint, "queue-endpoint", "", "`URL` of the Queue service")
	p.StringVar(&c.FileEndpoint, "file-endpoint", "", "`URL` of the File service")
}

// connection is how to reach an account: at most one of key, sas and login is there.
type connection struct {
	account  string
	endpoint map[service]string
	key, sas string
	login    bool
}

type service string

const (
	blobService  service = "blob"
	tableService service = "table"
	queueService service = "queue"
	fileService  service = "file"
)

// connection combines flags and environment. A flag wins over the environment; within the environment a connection
// string wins over the single variables, as it does for the Azure CLI; two credentials of the same rank are refused.
func (f *Factory) connection() (*connection, error) {
	c, err := resolveConnection(f.flags, f.Env)
	if err != nil {
		return nil, err
	}
	f.Redactor.know(secretsOf(c.key, c.sas)...)
	return c, nil
}

func resolveConnection(flags connectionFlags, env Env) (*connection, error) {
	if err := flags.contradictions(); err != nil {
		return nil, err
	}
	c := &connection{endpoint: map[service]string{}}
	text := flags.ConnectionString
	if text == "" && flags.AccountName == "" {
		text = env.Get("AZURE_STORAGE_CONNECTION_STRING")
	}
	var key, sas string
	if text != "" {
		parsed, err := parseConnectionString(text)
		if err != nil {
			return nil, err
		}
		c.account, key, sas = parsed.account, parsed.key, parsed.sas
		c.endpoint[blobService], c.endpoint[tableService] = parsed.blob, parsed.table
		c.endpoint[queueService], c.endpoint[fileService] = parsed.queue, parsed.file
	} else {
		c.account = flags.AccountName
		if c.account == "" {
			c.account = env.Get("AZURE_STORAGE_ACCOUNT")
		}
		key, sas = env.Get("AZURE_STORAGE_KEY"), env.Get("AZURE_STORAGE_SAS_TOKEN")
		if c.account != "" {
			if err := validAccount("the account name", c.account); err != nil {
				return nil, err
			}
			for _, s := range []service{blobService, tableService, queueService, fileService} {
				c.endpoint[s] = "https://" + c.account + "." + string(s) + ".core.windows.net"
			}
		}
	}
	if err := c.endpoints(flags); err != nil {
		return nil, err
	}
	return c, c.credentials(flags, env, key, sas)
}

func (c *connectionFlags) contradictions() error {
	type flag struct{ name, value string }
	credentials := []flag{{"--account-key", c.AccountKey}, {"--sas-token", c.SASToken}}
	if c.ConnectionString != "" {
		for _, o := range append(credentials, flag{"--account-name", c.AccountName}) {
			if o.value != "" {
				return WithHint(Usagef("--connection-string and %s cannot both be given", o.name), "the connection string names the account and its credential: drop "+o.name)
			}
		}
	}
	if c.AccountKey != "" && c.SASToken != "" {
		return WithHint(Usagef("--account-key and --sas-token cannot both be given"), "give the one to authorise requests with")
	}
	switch c.AuthMode {
	case "", "key":
	case "login":
		for _, o := range credentials {
			if o.value != "" {
				return WithHint(Usagef("--auth-mode login and %s cannot both be given", o.name), "drop "+o.name+" to sign in, or --auth-mode to use it")
			}
		}
	default:
		return Usagef("--auth-mode %q is neither login nor key", c.AuthMode)
	}
	if err := validKey("--account-key", c.AccountKey); err != nil {
		return err
	}
	return validSAS("--sas-token", strings.TrimPrefix(c.SASToken, "?"))
}

func (c *connection) endpoints(flags connectionFlags) error {
	for s, given := range map[service]string{
		blobService: flags.BlobEndpoint, tableService: flags.TableEndpoint, queueService: flags.QueueEndpoint, fileService: flags.FileEndpoint,
	} {
		if given == "" {
			continue
		}
		endpoint, err := validEndpoint("--"+string(s)+"-endpoint", given)
		if err != nil {
			return err
		}
		c.endpoint[s] = endpoint
		if c.account == "" {
			c.account = accountOf(endpoint)
		}
	}
	return nil
}

func (c *connection) credentials(flags connectionFlags, env Env, key, sas string) error {
	switch {
	case flags.AuthMode == "login":
		c.login = true
		return nil
	case flags.AccountKey != "":
		c.key = flags.AccountKey
	case flags.SASToken != "":
		c.sas = strings.TrimPrefix(flags.SASToken, "?")
	case flags.ConnectionString == "" && flags.AuthMode == "" && env.Get("AZURE_STORAGE_AUTH_MODE") == "login":
		c.login = true
		return nil
	case key != "" && sas != "":
		return WithHint(Usagef("AZURE_STORAGE_KEY and AZURE_STORAGE_SAS_TOKEN are both set"), "unset one of them, or give --account-key, --sas-token or --auth-mode login")
	case key != "":
		if err := validKey("AZURE_STORAGE_KEY", key); err != nil {
			return err
		}
		c.key = key
	case sas != "":
		c.sas = strings.TrimPrefix(sas, "?")
		if err := validSAS("AZURE_STORAGE_SAS_TOKEN", c.sas); err != nil {
			return err
		}
	default:
		mode := flags.AuthMode
		if mode == "" {
			mode = env.Get("AZURE_STORAGE_AUTH_MODE")
		}
		switch mode {
		case "", "login":
		case "key":
			return WithHint(Usagef("auth mode key, but neither a key nor a SAS is given"), "give --account-key or --sas-token, or see azconc help environment")
		default:
			return Usagef("AZURE_STORAGE_AUTH_MODE %q is neither login nor key", mode)
		}
		c.login = true
	}
	if c.key != "" && c.account == "" {
		return WithHint(Usagef("an account key is given without an account"), "give --account-name")
	}
	return nil
}

// secretsOf returns the forms in which a credential could turn up in a text.
func secretsOf(key, sas string) []string {
	var out []string
	if key != "" {
		out = append(out, key)
	}
	for _, pair := range strings.Split(sas, "&") {
		if name, value, _ := strings.Cut(pair, "="); strings.EqualFold(name, "sig") && value != "" {
			out = append(out, value)
			if plain := unescape(value); plain != value {
				out = append(out, plain)
			}
		}
	}
	return out
}
