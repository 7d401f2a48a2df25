// Package azaccount finds the storage account to work with in the environment, as azconc and the Azure CLI do, and makes
// the SDK's clients for it.
//
//	account, err := azaccount.Resolve(azaccount.Flags{}, os.Getenv)
//	…
//	blobs, err := account.BlobService(nil)
//
// # Environment
//
//   - AZURE_STORAGE_CONNECTION_STRING: a connection string; UseDevelopmentStorage=true is an emulator on this machine.
//   - AZURE_STORAGE_ACCOUNT: the name of the account, with one of
//     AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, or Entra ID when neither is set.
//   - AZURE_STORAGE_CONNECTION_STRING_FILE, AZURE_STORAGE_KEY_FILE, AZURE_STORAGE_SAS_TOKEN_FILE: the name of a file that holds
//     the secret, in place of the variable without _FILE.
//   - AZURE_STORAGE_AUTH_MODE: login chooses Entra ID even if a key or a SAS is set.
//
// Entra ID is azidentity's DefaultAzureCredential, but for two pipelines that it does not know. In a job of GitHub Actions with the
// permission "id-token: write", AZURE_CLIENT_ID and AZURE_TENANT_ID select the job's own token; in Azure Pipelines, a service
// connection in AZURESUBSCRIPTION_SERVICE_CONNECTION_ID and the job's SYSTEM_ACCESSTOKEN do. Both are asked again for each token of
// Entra ID.
//
// A connection string wins over the other variables. Two credentials of the same rank are refused.
//
// # Secrets
//
// No error and no formatted [Account] contains a key or a signature. [Account.Secrets] lists them for a program that
// redacts its own output.
package azaccount
