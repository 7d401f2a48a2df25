package cli

import (
	"encoding/base64"
	"strings"
	"testing"
)

var (
	testKey = base64.StdEncoding.EncodeToString([]byte("the key of a test account, which is secret"))
	testSAS = "sv=2024-11-04&ss=b&sp=rw&sig=c2VjcmV0IHNpZ25hdHVyZQ%3D%3D"
)

func TestConnectionStringsGiveEndpointsAndCredential(t *testing.T) {
	for _, c := range []struct {
		text string
		want connectionString
	}{
		{"UseDevelopmentStorage=true", connectionString{
			account: devAccount, key: devKey, blob: "http://127.0.0.1:10000/devstoreaccount1",
			queue: "http://127.0.0.1:10001/devstoreaccount1", table: "http://127.0.0.1:10002/devstoreaccount1",
		}},
		{"DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=" + testKey + ";EndpointSuffix=core.chinacloudapi.cn", connectionString{
			account: "acme", key: testKey, blob: "https://acme.blob.core.chinacloudapi.cn", table: "https://acme.table.core.chinacloudapi.cn",
			queue: "https://acme.queue.core.chinacloudapi.cn", file: "https://acme.file.core.chinacloudapi.cn",
		}},
		{" blobendpoint = https://cdn.example/x/ ;SharedAccessSignature=?" + testSAS + ";", connectionString{
			sas: testSAS, blob: "https://cdn.example/x",
		}},
	} {
		got, err := parseConnectionString(c.text)
		if err != nil || got != c.want {
			t.Errorf("parseConnectionString(%q) = %+v, %v\nwant %+v", c.text, got, err, c.want)
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
		{"DefaultEndpointsProtocol=ftp;AccountName=acme", "DefaultEndpointsProtocol"},
		{"BlobEndpoint=https://x.example/?" + testSAS, "BlobEndpoint must be a URL without a query"},
		{"BlobEndpoint=acme;SharedAccessSignature=" + testSAS, "BlobEndpoint is not a URL"},
		{"AccountName=acme;SharedAccessSignature=sv=2024", "SharedAccessSignature is not"},
		{"SharedAccessSignature=" + testSAS, "neither AccountName nor an endpoint"},
		{"UseDevelopmentStorage=false", "UseDevelopmentStorage"},
		{"UseDevelopmentStorage=true;AccountKey=" + testKey, "AccountKey cannot be given"},
	} {
		_, err := parseConnectionString(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("parseConnectionString(%q): error %v, want one about %q", c.text, err, c.want)
			continue
		}
		all := err.Error() + HintOf(err)
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
		flags connectionFlags
		env   Env
		want  connection_
	}{
		{"a connection string in the environment", connectionFlags{}, Env{"AZURE_STORAGE_CONNECTION_STRING=" + connection},
			connection_{account: "envacct", blob: "https://envacct.blob.core.windows.net", key: testKey}},
		{"wins over the single variables", connectionFlags{}, Env{"AZURE_STORAGE_CONNECTION_STRING=" + connection, "AZURE_STORAGE_ACCOUNT=acme", "AZURE_STORAGE_SAS_TOKEN=" + testSAS},
			connection_{account: "envacct", blob: "https://envacct.blob.core.windows.net", key: testKey}},
		{"--connection-string over it", connectionFlags{ConnectionString: "AccountName=acme;SharedAccessSignature=" + testSAS}, Env{"AZURE_STORAGE_CONNECTION_STRING=" + connection, "AZURE_STORAGE_AUTH_MODE=login"},
			connection_{account: "acme", blob: "https://acme.blob.core.windows.net", sas: testSAS}},
		{"--account-name over it", connectionFlags{AccountName: "acme", AccountKey: other}, Env{"AZURE_STORAGE_CONNECTION_STRING=" + connection},
			connection_{account: "acme", blob: "https://acme.blob.core.windows.net", key: other}},
		{"--account-name with the key of the environment", connectionFlags{AccountName: "acme"}, Env{"AZURE_STORAGE_KEY=" + testKey},
			connection_{account: "acme", blob: "https://acme.blob.core.windows.net", key: testKey}},
		{"--sas-token over the string's key", connectionFlags{SASToken: "?" + testSAS}, Env{"AZURE_STORAGE_CONNECTION_STRING=" + connection},
			connection_{account: "envacct", blob: "https://envacct.blob.core.windows.net", sas: testSAS}},
		{"--sas-token over AZURE_STORAGE_KEY", connectionFlags{SASToken: testSAS}, Env{"AZURE_STORAGE_ACCOUNT=acme", "AZURE_STORAGE_KEY=" + testKey},
			connection_{account: "acme", blob: "https://acme.blob.core.windows.net", sas: testSAS}},
		{"--auth-mode login over a key", connectionFlags{AuthMode: "login"}, Env{"AZURE_STORAGE_CONNECTION_STRING=" + connection},
			connection_{account: "envacct", blob: "https://envacct.blob.core.windows.net", login: true}},
		{"login from the environment leaves its key alone", connectionFlags{}, Env{"AZURE_STORAGE_ACCOUNT=acme", "AZURE_STORAGE_KEY=" + testKey, "AZURE_STORAGE_AUTH_MODE=login"},
			connection_{account: "acme", blob: "https://acme.blob.core.windows.net", login: true}},
		{"an account alone signs in", connectionFlags{AccountName: "acme"}, Env{},
			connection_{account: "acme", blob: "https://acme.blob.core.windows.net", login: true}},
		{"an endpoint of one's own", connectionFlags{AccountName: "devstoreaccount1", AccountKey: devKey, BlobEndpoint: "http://127.0.0.1:1234/devstoreaccount1/"}, Env{},
			connection_{account: "devstoreaccount1", blob: "http://127.0.0.1:1234/devstoreaccount1", key: devKey}},
		{"an endpoint names its account", connectionFlags{AccountKey: testKey, BlobEndpoint: "https://acme.blob.core.windows.net"}, Env{},
			connection_{account: "acme", blob: "https://acme.blob.core.windows.net", key: testKey}},
	} {
		got, err := resolveConnection(c.flags, c.env)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if g := (connection_{got.account, got.endpoint[blobService], got.key, got.sas, got.login}); g != c.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.name, g, c.want)
		}
	}
}

// connection_ is the comparable part of a connection.
type connection_ struct {
	account, blob, key, sas string
	login                   bool
}

func TestContradictoryConnectionsAreNamed(t *testing.T) {
	for _, c := range []struct {
		flags connectionFlags
		env   Env
		want  string
	}{
		{connectionFlags{AccountKey: testKey, SASToken: testSAS}, nil, "--account-key and --sas-token"},
		{connectionFlags{ConnectionString: "UseDevelopmentStorage=true", AccountKey: testKey}, nil, "--connection-string and --account-key"},
		{connectionFlags{ConnectionString: "UseDevelopmentStorage=true", AccountName: "acme"}, nil, "--connection-string and --account-name"},
		{connectionFlags{AuthMode: "login", SASToken: testSAS}, nil, "--auth-mode login and --sas-token"},
		{connectionFlags{AuthMode: "password"}, nil, `--auth-mode "password"`},
		{connectionFlags{AccountKey: "not base64!"}, nil, "--account-key is not base64"},
		{connectionFlags{SASToken: "sv=1"}, nil, "--sas-token is not"},
		{connectionFlags{AccountName: "acme", AuthMode: "key"}, nil, "neither a key nor a SAS"},
		{connectionFlags{AccountName: "acme"}, Env{"AZURE_STORAGE_AUTH_MODE=magic"}, "AZURE_STORAGE_AUTH_MODE"},
		{connectionFlags{AccountName: "acme"}, Env{"AZURE_STORAGE_KEY=" + testKey, "AZURE_STORAGE_SAS_TOKEN=" + testSAS}, "AZURE_STORAGE_KEY and AZURE_STORAGE_SAS_TOKEN"},
		{connectionFlags{AccountKey: testKey}, nil, "without an account"},
		{connectionFlags{AccountName: "Acme!"}, nil, "not an account name"},
		{connectionFlags{BlobEndpoint: "acme"}, nil, "--blob-endpoint is not a URL"},
	} {
		_, err := resolveConnection(c.flags, c.env)
		if err == nil || Judge(err).Code != ExitUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("resolveConnection(%+v): %v, want a usage error about %q", c.flags, err, c.want)
		} else if s := err.Error(); strings.Contains(s, testKey) || strings.Contains(s, "sig=") {
			t.Errorf("the error shows a secret: %s", s)
		}
	}
}

func TestACredentialIsNotShownToAnotherAccount(t *testing.T) {
	s, _, _, _ := TestStreams()
	f := NewFactory(s, Env{"AZURE_STORAGE_CONNECTION_STRING=AccountName=acme;AccountKey=" + testKey})
	defer f.Close()
	r, err := ParseBlob("https://evil.blob.core.windows.net/jobs/a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.BlockBlob(r); err == nil || !strings.Contains(err.Error(), "a different account") {
		t.Errorf("a URL of another account: %v, want it refused", err)
	}
	r, err = ParseBlob("https://evil.blob.core.windows.net/jobs/a?" + testSAS)
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.BlockBlob(r)
	if err != nil || !strings.HasPrefix(c.URL(), "https://evil.blob.core.windows.net/jobs/a?") {
		t.Errorf("a URL with its own SAS: %v", err)
	}
}
