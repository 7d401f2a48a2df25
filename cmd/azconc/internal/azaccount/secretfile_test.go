package azaccount

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecretsComeFromFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	connection := "AccountName=fileacct;AccountKey=" + testKey
	keyFile, sasFile, connectionFile := file("key", testKey+"\r\n"), file("sas", "?"+testSAS+"\n"), file("connection", connection)
	empty, bad, long := file("empty", " \n"), file("bad", "not base64!"), file("long", strings.Repeat("A", longestSecret+4))
	missing := filepath.Join(dir, "missing")
	acme := resolved{account: "acme", blob: "https://acme.blob.core.windows.net"}
	for _, c := range []struct {
		name  string
		flags Flags
		env   env
		want  resolved
		err   string
	}{
		{"a key", Flags{AccountName: "acme", AccountKeyFile: keyFile}, nil, acme.with(testKey, ""), ""},
		{"a SAS", Flags{AccountName: "acme", SASTokenFile: sasFile}, nil, acme.with("", testSAS), ""},
		{"a connection string", Flags{ConnectionStringFile: connectionFile}, nil, resolved{"fileacct", "https://fileacct.blob.core.windows.net", testKey, "", false}, ""},
		{"a variable with the key's file", Flags{}, env{"AZURE_STORAGE_ACCOUNT=acme", "AZURE_STORAGE_KEY_FILE=" + keyFile}, acme.with(testKey, ""), ""},
		{"a variable with the SAS's file", Flags{}, env{"AZURE_STORAGE_ACCOUNT=acme", "AZURE_STORAGE_SAS_TOKEN_FILE=" + sasFile}, acme.with("", testSAS), ""},
		{"a variable with the connection string's file", Flags{}, env{"AZURE_STORAGE_CONNECTION_STRING_FILE=" + connectionFile},
			resolved{"fileacct", "https://fileacct.blob.core.windows.net", testKey, "", false}, ""},
		{"a flag over variables, whose files are not read", Flags{AccountName: "acme", AccountKeyFile: keyFile},
			env{"AZURE_STORAGE_KEY_FILE=" + missing, "AZURE_STORAGE_SAS_TOKEN_FILE=" + missing, "AZURE_STORAGE_CONNECTION_STRING_FILE=" + missing}, acme.with(testKey, ""), ""},

		{"two flags", Flags{AccountName: "acme", AccountKey: testKey, AccountKeyFile: keyFile}, nil, resolved{}, "--account-key and --account-key-file cannot both be given"},
		{"two credentials", Flags{AccountName: "acme", AccountKeyFile: keyFile, SASTokenFile: sasFile}, nil, resolved{}, "--account-key-file and --sas-token-file cannot both be given"},
		{"a connection string and a key", Flags{ConnectionStringFile: connectionFile, AccountKey: testKey}, nil, resolved{}, "--connection-string-file and --account-key cannot both be given"},
		{"login and a key", Flags{AccountName: "acme", AuthMode: "login", AccountKeyFile: keyFile}, nil, resolved{}, "--auth-mode login and --account-key-file cannot both be given"},
		{"two variables", Flags{}, env{"AZURE_STORAGE_ACCOUNT=acme", "AZURE_STORAGE_KEY=" + testKey, "AZURE_STORAGE_KEY_FILE=" + keyFile}, resolved{}, "AZURE_STORAGE_KEY and AZURE_STORAGE_KEY_FILE cannot both be given"},
		{"two credentials in variables", Flags{}, env{"AZURE_STORAGE_ACCOUNT=acme", "AZURE_STORAGE_KEY_FILE=" + keyFile, "AZURE_STORAGE_SAS_TOKEN=" + testSAS}, resolved{}, "AZURE_STORAGE_KEY_FILE and AZURE_STORAGE_SAS_TOKEN are both set"},
		{"no such file", Flags{AccountName: "acme", AccountKeyFile: missing}, nil, resolved{}, "--account-key-file: open "},
		{"no such file in a variable", Flags{AccountName: "acme"}, env{"AZURE_STORAGE_KEY_FILE=" + missing}, resolved{}, "AZURE_STORAGE_KEY_FILE: open "},
		{"an empty file", Flags{AccountName: "acme", AccountKeyFile: empty}, nil, resolved{}, "empty is empty"},
		{"a file of something else", Flags{AccountName: "acme", AccountKeyFile: bad}, nil, resolved{}, "--account-key-file is not base64"},
		{"a long file", Flags{AccountName: "acme", AccountKeyFile: long}, nil, resolved{}, "longer than 65536 bytes"},
	} {
		got, err := Resolve(c.flags, c.env.Get)
		switch {
		case c.err != "":
			if err == nil || !errors.As(err, new(*Error)) || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error()+hintOf(err), testKey) {
				t.Errorf("%s: %v, want one about %q", c.name, err, c.err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		default:
			if g := (resolved{got.name, got.endpoint[Blob], got.key, got.sas, got.login != nil}); g != c.want {
				t.Errorf("%s:\ngot  %+v\nwant %+v", c.name, g, c.want)
			}
		}
	}
}

func (r resolved) with(key, sas string) resolved {
	r.key, r.sas = key, sas
	return r
}
