package emulator

import "fmt"

// Account is one of the accounts of a [Server]. Accounts share no data.
type Account struct {
	// Name and Key are the account's shared key credential.
	Name, Key string
	// BlobURL, QueueURL, TableURL and FileURL are the endpoints, "http://127.0.0.1:<port>/<account>".
	BlobURL, QueueURL, TableURL, FileURL string
}

// ConnectionString returns the account's connection string, with the key, for the SDKs and for azconc.
func (a Account) ConnectionString() string {
	text := fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;BlobEndpoint=%s;QueueEndpoint=%s;TableEndpoint=%s;",
		a.Name, a.Key, a.BlobURL, a.QueueURL, a.TableURL)
	if a.FileURL != "" { // Azurite has none
		text += "FileEndpoint=" + a.FileURL + ";"
	}
	return text
}
