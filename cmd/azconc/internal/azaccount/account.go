package azaccount

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Service is one of the services of an account.
type Service string

// The services.
const (
	Blob  Service = "blob"
	Table Service = "table"
	Queue Service = "queue"
	File  Service = "file"
)

var services = []Service{Blob, Table, Queue, File}

// Account describes how to reach a storage account: its endpoints, and a key, a SAS or Entra ID. It does not change
// after it was made, and is safe for concurrent use. Package fmt shows no secret of it.
type Account struct {
	name     string
	endpoint map[Service]string // without a slash at the end
	key, sas string
	login    *login // nil unless Entra ID is used
}

// login makes the credential on first use, once for all copies of an account.
type login struct {
	getenv     func(string) string
	once       sync.Once
	credential azcore.TokenCredential
	err        error
}

func (l *login) get() (azcore.TokenCredential, error) {
	l.once.Do(func() { l.credential, l.err = newCredential(l.getenv) })
	return l.credential, l.err
}

// Signed returns the account of a URL that carries its own SAS.
func Signed(s Service, endpoint, sas string) *Account {
	return &Account{endpoint: map[Service]string{s: strings.TrimSuffix(endpoint, "/")}, sas: sas}
}

// At returns the account with another endpoint for s. An endpoint that is not the account's own is an error, because
// the credential would be sent to another account. A token of Entra ID may be sent to any account.
func (a *Account) At(s Service, endpoint string) (*Account, error) {
	if own := a.endpoint[s]; own != "" && a.login == nil && !strings.EqualFold(own, endpoint) {
		return nil, hinted("give --auth-mode login, or a URL with a SAS", "the URL names a different account than the credential")
	}
	at := *a
	at.endpoint = maps.Clone(a.endpoint)
	at.endpoint[s] = endpoint
	return &at, nil
}

// Name returns the name of the account, or "" if only endpoints are known.
func (a *Account) Name() string { return a.name }

// Endpoint returns the URL of s without a slash at the end, or "" if it is not known.
func (a *Account) Endpoint(s Service) string { return a.endpoint[s] }

// Emulator reports whether the endpoint of s is that of an emulator, which is addressed by an IP address or as localhost
// and has the account in the path.
func (a *Account) Emulator(s Service) bool {
	u, err := url.Parse(a.endpoint[s])
	return err == nil && PathStyle(u.Hostname())
}

// PathStyle reports whether URLs with this host have the account as the first element of their path, as emulators' do.
func PathStyle(host string) bool { return host == "localhost" || net.ParseIP(host) != nil }

// Credential returns how requests are authorized, without the secret: "key", "SAS" or "Entra ID".
func (a *Account) Credential() string {
	switch {
	case a.key != "":
		return "key"
	case a.sas != "":
		return "SAS"
	}
	return "Entra ID"
}

// String returns the name and the kind of credential.
func (a *Account) String() string { return a.name + " (" + a.Credential() + ")" }

// GoString is String, so that no format of package fmt shows a secret.
func (a *Account) GoString() string { return a.String() }

// Granted returns the fields of the account's SAS, none if it has another credential.
func (a *Account) Granted() url.Values {
	granted, _ := url.ParseQuery(a.sas)
	return granted
}

// Secrets returns every form in which the credential could appear in a text.
func (a *Account) Secrets() []string { return SecretsOf(a.key, a.sas) }

// SecretsOf returns every form in which an account key or the signature of a SAS could appear in a text. Either may be
// empty.
func SecretsOf(key, sas string) []string {
	var out []string
	if key != "" {
		out = append(out, key)
	}
	for pair := range strings.SplitSeq(sas, "&") {
		if name, value, _ := strings.Cut(pair, "="); strings.EqualFold(name, "sig") && value != "" {
			out = append(out, value)
			if plain, err := url.QueryUnescape(value); err == nil && plain != "" && plain != value {
				out = append(out, plain)
			}
		}
	}
	return out
}

// nameIn returns the name of the account in the URL of one of its services.
func nameIn(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	if PathStyle(u.Hostname()) {
		return strings.Trim(u.Path, "/")
	}
	account, _, _ := strings.Cut(u.Hostname(), ".")
	return account
}

// Error is a setting that cannot be used. Nothing has been sent. Neither text contains a secret.
type Error struct {
	Message string // names the flag, the variable or the field
	Hint    string // how to fix it, if that does not follow from the message
}

func (e *Error) Error() string { return e.Message }

func invalid(format string, args ...any) error { return &Error{Message: fmt.Sprintf(format, args...)} }

func hinted(hint, format string, args ...any) error {
	return &Error{Message: fmt.Sprintf(format, args...), Hint: hint}
}
