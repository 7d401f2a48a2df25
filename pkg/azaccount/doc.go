// Package azaccount finds the storage account to work with in the environment, as azconc and the Azure CLI do, and makes
// the SDK's clients for it.
//
//	account, err := azaccount.Resolve(azaccount.Flags{}, os.Getenv)
//	…
//	blobs, err := account.BlobService(nil)
//
// # Environment
//
//   - AZURE_STORAGE_CONNECTION_STRING: a connection string; UseDevelopmentStorage=true is a local Azurite.
//   - AZURE_STORAGE_ACCOUNT: the name of the account, with one of
//     AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, or Entra ID by azidentity's DefaultAzureCredential when neither is set.
//   - AZURE_STORAGE_CONNECTION_STRING_FILE, AZURE_STORAGE_KEY_FILE, AZURE_STORAGE_SAS_TOKEN_FILE: the name of a file that holds
//     the secret, in place of the variable without _FILE.
//   - AZURE_STORAGE_AUTH_MODE: login chooses Entra ID even if a key or a SAS is set.
//
// A connection string wins over the other variables. Two credentials of the same rank are refused.
//
// # Secrets
//
// No error and no formatted [Account] contains a key or a signature. [Account.Secrets] lists them for a program that
// redacts its own output.
package azaccount
