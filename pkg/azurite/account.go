package azurite

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
)

const (
	// DefaultAccount is the account that Azurite, the SDKs and UseDevelopmentStorage=true use by default.
	DefaultAccount = "devstoreaccount1"
	// DefaultKey is its key, which is public: https://learn.microsoft.com/azure/storage/common/storage-connect-azurite.
	DefaultKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// Account is a storage account of a [Server]. Accounts share no data.
type Account struct {
	// Name and Key are the account's shared key credential.
	Name, Key string
	// BlobURL, QueueURL and TableURL are the endpoints, "http://127.0.0.1:<port>/<account>".
	BlobURL, QueueURL, TableURL string
}

// ConnectionString returns the account's connection string, with the key, for the SDKs and for azconc.
func (a Account) ConnectionString() string {
	return fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;BlobEndpoint=%s;QueueEndpoint=%s;TableEndpoint=%s;",
		a.Name, a.Key, a.BlobURL, a.QueueURL, a.TableURL)
}

func newAccounts(names []string) []Account {
	accounts := make([]Account, len(names))
	for i, name := range names {
		accounts[i] = Account{Name: name, Key: DefaultKey}
		if name != DefaultAccount {
			key := make([]byte, 64)
			rand.Read(key)
			accounts[i].Key = base64.StdEncoding.EncodeToString(key)
		}
	}
	return accounts
}
