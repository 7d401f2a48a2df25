package azaccount

import (
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// env is an environment in the form of os.Environ.
type env []string

func (e env) Get(name string) string {
	for _, pair := range e {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

func hintOf(err error) string {
	e, _ := errors.AsType[*Error](err)
	return e.Hint
}

// described is all of an account, secrets included.
func described(a *Account) string {
	if a == nil {
		return "none"
	}
	return fmt.Sprintf("%s key %q sas %q %v", a.name, a.key, a.sas, a.endpoint)
}

var (
	testKey = base64.StdEncoding.EncodeToString([]byte("the key of a test account, which is secret"))
	testSAS = "sv=2024-11-04&ss=b&sp=rw&sig=c2VjcmV0IHNpZ25hdHVyZQ%3D%3D"
)

func TestConnectionStringsGiveEndpointsAndCredential(t *testing.T) {
	for _, c := range []struct {
		text string
		want Account
	}{
		{"UseDevelopmentStorage=true", Account{
			name: devAccount, key: devKey, endpoint: map[Service]string{Blob: "http://127.0.0.1:10000/devstoreaccount1",
				Queue: "http://127.0.0.1:10001/devstoreaccount1", Table: "http://127.0.0.1:10002/devstoreaccount1"},
		}},
		{"DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=" + testKey + ";EndpointSuffix=core.chinacloudapi.cn", Account{
			name: "acme", key: testKey, endpoint: map[Service]string{Blob: "https://acme.blob.core.chinacloudapi.cn", Table: "https://acme.table.core.chinacloudapi.cn",
				Queue: "https://acme.queue.core.chinacloudapi.cn", File: "https://acme.file.core.chinacloudapi.cn"},
		}},
		{" blobendpoint = https://cdn.example/x/ ;SharedAccessSignature=?" + testSAS + ";", Account{
			sas: testSAS, endpoint: map[Service]string{Blob: "https://cdn.example/x"},
		}},
	} {
		got, err := parseConnectionString(c.text)
		if err != nil || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("parseConnectionString(%q) = %s, %v\nwant %s", c.text, described(got), err, described(&c.want))
		}
	}
}

func TestABadConnectionStringNamesTheFieldAndNeverASecret(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "empty"},
		{"AccountName=acme;AccountKey=" + testKey[:len(testKey)-3], "AccountKey is not base64"},
		{"AccountName=acme;AccountKey=" + testKey[:10] + ";" + testKey[10:], "field 3"},
		{"AccountName=acme;AccountKey=" + testKey + ";SharedAccessSignature=" + testSAS, "AccountKey and SharedAccessSignature"},
		{"AccountKey=" + testKey, "without AccountName"},
		{"AccountName=acme;AccountName=acme", "AccountName is given twice"},
		{"AccountName=;AccountKey=" + testKey, "AccountName is empty"},
		{"AccountName=evil.example/;AccountKey=" + testKey, "AccountName is not an account name"},
		{"AccountName=acme;EndpointSuffix=x/y;AccountKey=" + testKey, "EndpointSuffix"},
		{"AccountName=acme;EndpointSuffix=\x7fre.windows.net;AccountKey=" + testKey, "EndpointSuffix"},
		{"DefaultEndpointsProtocol=ftp;AccountName=acme", "DefaultEndpointsProtocol"},
		{"BlobEndpoint=https://x.example/?" + testSAS, "BlobEndpoint must be a URL without a query"},
		{"BlobEndpoint=acme;SharedAccessSignature=" + testSAS, "BlobEndpoint is not a URL"},
		{"AccountName=acme;SharedAccessSignature=sv=2024", "SharedAccessSignature is not"},
		{"SharedAccessSignature=" + testSAS, "neither AccountName nor an endpoint"},
		{"UseDevelopmentStorage=false", "UseDevelopmentStorage"},
		{"UseDevelopmentStorage=true;AccountKey=" + testKey, "nothing else can be given"},
	} {
		_, err := parseConnectionString(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("parseConnectionString(%q): error %v, want one about %q", c.text, err, c.want)
			continue
		}
		all := err.Error() + hintOf(err)
		for _, secret := range []string{testKey[:8], testKey[10:], "c2VjcmV0", "sig="} {
			if strings.Contains(all, secret) {
				t.Errorf("parseConnectionString(%q): the error shows %q: %s", c.text, secret, all)
			}
		}
	}
}

func TestFlagsWinOverTheEnvironment(t *testing.T) {
	other := base64.StdEncoding.EncodeToString([]byte("another key, also of a test account"))
	connection := "AccountName=envacct;AccountKey=" + testKey
	for _, c := range []struct {
		name  string
		flags Flags
		env   env
		want  resolved
	}{
		{"a connection string in the environment", Flags{}, env{"AZURE_STORAGE_CONNECTION_STRING=" + connection},
			resolved{account: "envacct", blob: "https://envacct.blob.core.windows.net", key: testKey}},
		{"wins over the single variables", Flags{}, env{"AZURE_STORAGE_CONNECTION_STRING=" + connection, "AZURE_STORAGE_ACCOUNT=acme", "AZURE_STORAGE_SAS_TOKEN=" + testSAS},
			resolved{account: "envacct", blob: "https://envacct.blob.core.windows.net", key: testKey}},
		{"--connection-string over it", Flags{ConnectionString: "AccountName=acme;SharedAccessSignature=" + testSAS}, env{"AZURE_STORAGE_CONNECTION_STRING=" + connection, "AZURE_STORAGE_AUTH_MODE=login"},
			resolved{account: "acme", blob: "https://acme.blob.core.windows.net", sas: testSAS}},
		{"--account-name over it", Flags{AccountName: "acme", AccountKey: other}, env{"AZURE_STORAGE_CONNECTION_STRING=" + connection},
			resolved{account: "acme", blob: "https://acme.blob.core.windows.net", key: other}},
		{"--account-name with the key of the environment", Flags{AccountName: "acme"}, env{"AZURE_STORAGE_KEY=" + testKey},
			resolved{account: "acme", blob: "https://acme.blob.core.windows.net", key: testKey}},
		{"--sas-token over the string's key", Flags{SASToken: "?" + testSAS}, env{"AZURE_STORAGE_CONNECTION_STRING=" + connection},
			resolved{account: "envacct", blob: "https://envacct.blob.core.windows.net", sas: testSAS}},
		{"--sas-token over AZURE_STORAGE_KEY", Flags{SASToken: testSAS}, env{"AZURE_STORAGE_ACCOUNT=acme", "AZURE_STORAGE_KEY=" + testKey},
			resolved{account: "acme", blob: "https://acme.blob.core.windows.net", sas: testSAS}},
		{"--auth-mode login over a key", Flags{AuthMode: "login"}, env{"AZURE_STORAGE_CONNECTION_STRING=" + connection},
			resolved{account: "envacct", blob: "https://envacct.blob.core.windows.net", login: true}},
		{"login from the environment leaves its key alone", Flags{}, env{"AZURE_STORAGE_ACCOUNT=acme", "AZURE_STORAGE_KEY=" + testKey, "AZURE_STORAGE_AUTH_MODE=login"},
			resolved{account: "acme", blob: "https://acme.blob.core.windows.net", login: true}},
		{"an account alone signs in", Flags{AccountName: "acme"}, env{},
			resolved{account: "acme", blob: "https://acme.blob.core.windows.net", login: true}},
		{"an endpoint of one's own", Flags{AccountName: "devstoreaccount1", AccountKey: devKey, BlobEndpoint: "http://127.0.0.1:1234/devstoreaccount1/"}, env{},
			resolved{account: "devstoreaccount1", blob: "http://127.0.0.1:1234/devstoreaccount1", key: devKey}},
		{"an endpoint names its account", Flags{AccountKey: testKey, BlobEndpoint: "https://acme.blob.core.windows.net"}, env{},
			resolved{account: "acme", blob: "https://acme.blob.core.windows.net", key: testKey}},
	} {
		got, err := Resolve(c.flags, c.env.Get)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if g := (resolved{got.name, got.endpoint[Blob], got.key, got.sas, got.login != nil}); g != c.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.name, g, c.want)
		}
	}
}

// resolved is what matters of an account here.
type resolved struct {
	account, blob, key, sas string
	login                   bool
}

func TestContradictoryConnectionsAreNamed(t *testing.T) {
	for _, c := range []struct {
		flags Flags
		env   env
		want  string
	}{
		{Flags{AccountKey: testKey, SASToken: testSAS}, nil, "--account-key and --sas-token"},
		{Flags{ConnectionString: "UseDevelopmentStorage=true", AccountKey: testKey}, nil, "--connection-string and --account-key"},
		{Flags{ConnectionString: "UseDevelopmentStorage=true", AccountName: "acme"}, nil, "--connection-string and --account-name"},
		{Flags{AuthMode: "login", SASToken: testSAS}, nil, "--auth-mode login and --sas-token"},
		{Flags{AuthMode: "password"}, nil, `--auth-mode "password"`},
		{Flags{AccountKey: "not base64!"}, nil, "--account-key is not base64"},
		{Flags{SASToken: "sv=1"}, nil, "--sas-token is not"},
		{Flags{AccountName: "acme", AuthMode: "key"}, nil, "neither a key nor a SAS"},
		{Flags{AccountName: "acme"}, env{"AZURE_STORAGE_AUTH_MODE=magic"}, "AZURE_STORAGE_AUTH_MODE"},
		{Flags{AccountName: "acme"}, env{"AZURE_STORAGE_KEY=" + testKey, "AZURE_STORAGE_SAS_TOKEN=" + testSAS}, "AZURE_STORAGE_KEY and AZURE_STORAGE_SAS_TOKEN"},
		{Flags{AccountKey: testKey}, nil, "without an account"},
		{Flags{AccountName: "Acme!"}, nil, "not an account name"},
		{Flags{BlobEndpoint: "acme"}, nil, "--blob-endpoint is not a URL"},
	} {
		_, err := Resolve(c.flags, c.env.Get)
		if err == nil || !errors.As(err, new(*Error)) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Resolve(%+v): %v, want one about %q", c.flags, err, c.want)
		} else if s := err.Error(); strings.Contains(s, testKey) || strings.Contains(s, "sig=") {
			t.Errorf("the error shows a secret: %s", s)
		}
	}
}

func TestAnAccountShowsNoSecretInAnyFormat(t *testing.T) {
	for _, env := range []env{
		{"AZURE_STORAGE_ACCOUNT=acme", "AZURE_STORAGE_KEY=" + testKey},
		{"AZURE_STORAGE_ACCOUNT=acme", "AZURE_STORAGE_SAS_TOKEN=" + testSAS},
	} {
		a, err := Resolve(Flags{}, env.Get)
		if err != nil {
			t.Fatal(err)
		}
		secrets := a.Secrets()
		if len(secrets) == 0 {
			t.Error("no secrets are listed")
		}
		for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
			for _, secret := range secrets {
				if text := fmt.Sprintf(format, a); strings.Contains(text, secret) || !strings.Contains(text, "acme") {
					t.Errorf("%s: %s", format, text)
				}
			}
		}
	}
}

func TestEveryClientIsMadeWithEachCredential(t *testing.T) {
	for credential, env := range map[string]env{
		"key":      {"AZURE_STORAGE_ACCOUNT=acme", "AZURE_STORAGE_KEY=" + testKey},
		"SAS":      {"AZURE_STORAGE_ACCOUNT=acme", "AZURE_STORAGE_SAS_TOKEN=" + testSAS},
		"Entra ID": {"AZURE_STORAGE_ACCOUNT=acme"},
	} {
		a, err := Resolve(Flags{}, env.Get)
		if err != nil {
			t.Fatal(err)
		}
		if a.Credential() != credential {
			t.Errorf("the credential is %s, want %s", a.Credential(), credential)
		}
		urls := map[Service]string{}
		if c, err := a.BlobService(nil); err == nil {
			urls[Blob] = c.URL()
		}
		if c, err := a.QueueService(nil); err == nil {
			urls[Queue] = c.URL()
		}
		if c, err := a.FileService(nil); err == nil {
			urls[File] = c.URL()
		}
		if _, err := a.TableService(nil); err != nil {
			t.Errorf("table, %s: %v", credential, err)
		}
		for _, s := range []Service{Blob, Queue, File} {
			want := "https://acme." + string(s) + ".core.windows.net/"
			if got := urls[s]; !strings.HasPrefix(got, want) || strings.Contains(got, "sig=") != (credential == "SAS") {
				t.Errorf("%s, %s: %q", s, credential, got)
			}
		}
	}
	none, err := Resolve(Flags{}, env{"AZURE_STORAGE_KEY="}.Get)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := none.BlobService(nil); err == nil || hintOf(err) == "" {
		t.Errorf("a client of no account: %v", err)
	}
}
